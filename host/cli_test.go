package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// cli runs the command line for the host and returns its output and exit code. While the host
// runs, commands that only ask it run in this process: the start of a process costs twenty times
// as much as what they do. TestScripts runs each command in its own process.
func (h *host) cli(args ...string) (stdout, stderr string, code int) {
	if h.cmd == nil || h.ended || !slices.Contains(clientCommands, args[0]) {
		return cli(h.config, args...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var out, errs bytes.Buffer
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return "", err.Error(), -1
	}
	defer stdin.Close()
	command := app{stdin: stdin, stdout: &out, stderr: &errs, program: filepath.Join(bin, "toolhost")}
	code = command.run(ctx, append(args, "--config", h.config))
	return out.String(), errs.String(), code
}

// clientCommands are commands that only ask a host, if one runs.
var clientCommands = []string{"approvals", "explain", "grants", "journal", "plugins", "reload", "token"}

// cli runs the command line in a separate process and returns its output and exit code.
func cli(config string, args ...string) (stdout, stderr string, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "toolhost"), append(args, "--config", config)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		return "", err.Error(), -1
	}
	return out.String(), errs.String(), code
}

// ok runs a command that must succeed and returns its output.
func (h *host) ok(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, code := h.cli(args...)
	if code != 0 {
		t.Fatalf("toolhost %v exits with %d\n%s%s", args, code, stdout, stderr)
	}
	return stdout
}

// answer shows an approval on the command line and decides on it. It takes the approval whose
// ID is given, or the only open one.
func (h *host) answer(t *testing.T, decide ...string) string {
	t.Helper()
	show := []string{"approvals", "show"}
	if len(decide) > 1 && !strings.HasPrefix(decide[1], "-") {
		show = append(show, decide[1])
	}
	h.ok(t, show...)
	return h.ok(t, append([]string{"approvals"}, decide...)...)
}

// seen returns the body of a REST decision by an approver who has seen the approval.
func (h *host) seen(t *testing.T, id string) string {
	t.Helper()
	whole, err := h.approver(t).Approval(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return asJSON(client.Answer{}.Seen(whole.Record))
}

// open waits until want approvals are open, and returns them.
func (h *host) open(t *testing.T, want int) (records []approval.Record) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d open approvals", want), func() bool {
		decode(t, h.ok(t, "approvals", "list", "--json"), &records)
		return len(records) == want
	})
	return records
}

// journal returns the rows that match a query, oldest first.
func (h *host) journal(t *testing.T, query ...string) (rows []journal.Record) {
	t.Helper()
	stdout, stderr, code := h.cli(append([]string{"journal", "query", "--json"}, query...)...)
	if code != 0 {
		t.Fatalf("toolhost journal query exits with %d: %s", code, stderr)
	}
	for line := range strings.Lines(stdout) {
		var row journal.Record
		decode(t, line, &row)
		rows = append([]journal.Record{row}, rows...)
	}
	return rows
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the test's own value
	}
	return string(text)
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

func removeFile(h *host, name string) error { return os.Remove(filepath.Join(h.dir, "ws", name)) }

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sqlite runs statements on the database of a stopped host, as another program would.
func sqlite(t *testing.T, stateDir string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(stateDir, "toolhost.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
