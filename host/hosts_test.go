package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/state/journal"
)

// TestCallWithAndWithoutAHost makes the same calls with and without a running host: the output
// and the records must be equal.
func TestCallWithAndWithoutAHost(t *testing.T) {
	t.Parallel()
	type result struct {
		Stdout, Stderr string
		Code           int
	}
	calls := [][]string{
		{"call", "read_file", "path=hello.txt"},
		{"call", "read_file", "path=none.txt"},
		{"call", "probe_tally", "note=a"},
		{"call", "probe_tally", "nte=a"},
		{"call", "reed_file", "path=hello.txt"},
		{"call", "read_file", "path=../outside"},
		{"tools", "--json"},
	}
	config := writeConfig(t, listening+writing+counting)
	run := func(end func()) (results []result, rows []journal.Record) {
		for _, args := range calls {
			stdout, stderr, code := cli(config, args...)
			results = append(results, result{stdout, stderr, code})
		}
		end() // also writes rows that lag
		return results, plain((&host{config: config}).journal(t))
	}
	resultsAlone, rowsAlone := run(func() {})
	if err := os.RemoveAll(filepath.Join(filepath.Dir(config), "state")); err != nil {
		t.Fatal(err)
	}
	h := serve(t, config)
	results, rows := run(h.stop)
	if diff := cmp.Diff(resultsAlone, results); diff != "" {
		t.Errorf("what is printed (-without +with a host):\n%s", diff)
	}
	if diff := cmp.Diff(rowsAlone, rows); diff != "" {
		t.Errorf("what is recorded (-without +with a host):\n%s", diff)
	}
	if len(rows) < 6 {
		t.Errorf("only %d rows: the test would prove nothing", len(rows))
	}
}

// TestTwoMCP runs two `toolhost mcp` with one state directory: the first serves the second,
// which ends with its client.
func TestTwoMCP(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, listening+writing+counting)
	first := toolhost(context.WithoutCancel(t.Context()), config, "mcp")
	a := connectTo(t, first, revisions[0], nil)
	for _, revision := range revisions {
		b := connect(t, config, revision, nil)
		if got := b.must(t, "read_file", map[string]any{"path": "hello.txt"}); got != "hello, world\n" {
			t.Errorf("over the second, read_file = %q", got)
		}
		if pid := b.must(t, "probe_process", nil); pid != a.must(t, "probe_process", nil) {
			t.Errorf("the second has a plugin of its own, process %s", pid)
		}
		if err := b.Close(); err != nil {
			t.Errorf("the second does not end cleanly with its client: %v", err)
		}
	}
	a.must(t, "read_file", map[string]any{"path": "hello.txt"})
}

// TestTwoServe starts a second host with the first one's state directory.
func TestTwoServe(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+writing))
	_, stderr, code := h.cli("serve")
	if want := fmt.Sprintf("is used by process %d", h.cmd.Process.Pid); code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("a second host exits with %d and says %q, want %q", code, stderr, want)
	}
	h.must(t, 200, "GET", "/readyz", h.token, "")
	h.kill()
	h.restart(t) // the control: the lock of a dead host is free
}

// TestDamagedDatabase starts a host with a damaged database. The host names the file and what
// to do, and does not change the file.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	original, _ := recorded(t)
	whole := readFile(t, filepath.Join(filepath.Dir(original), "state", "toolhost.db"))
	scribbled := []byte(whole)
	for i := 4096; i < len(scribbled); i += 64 {
		scribbled[i] ^= 0xff
	}
	for _, tt := range []struct{ name, text, want string }{
		{"scribbled over", string(scribbled), "damaged"},
		{"cut in half", whole[:len(whole)/2], "damaged"},
		{"cut in a page", whole[:5000], "damaged"},
		{"a text", "hello, world\n", "not a database"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := copyHost(t, original)
			path := filepath.Join(filepath.Dir(config), "state", "toolhost.db")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"serve"}, {"call", "probe_tally", "note=a"}, {"mcp"}, {"journal", "verify"}} {
				_, stderr, code := cli(config, args...)
				for _, want := range []string{path, tt.want, "move it away", "bring back a copy"} {
					if code != 1 || !strings.Contains(stderr, want) {
						t.Errorf("toolhost %s exits with %d and says %q, want %q", args[0], code, stderr, want)
					}
				}
			}
			if readFile(t, path) != tt.text {
				t.Error("the file has changed since")
			}
			if err := os.WriteFile(path, []byte(whole), 0o600); err != nil { // the control: a copy is restored
				t.Fatal(err)
			}
			if _, stderr, code := cli(config, "call", "probe_tally", "note=a"); code != 0 {
				t.Errorf("control: with the copy a call exits with %d: %s", code, stderr)
			}
		})
	}
}

// TestReloadWithMistakes sends SIGHUP after a change with a mistake: the previous
// configuration stays in force. The control is a change without a mistake.
func TestReloadWithMistakes(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+writing+counting))
	before := readFile(t, h.config)
	change := func(block string) {
		t.Helper()
		if err := os.WriteFile(h.config, []byte(strings.Replace(before, counting, block, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asked := strings.Replace(counting, `"allow"`, `"deny"`, 1)
	change(strings.Replace(asked, "path ", "pth ", 1))
	if _, stderr, code := h.cli("reload"); code != 1 || !strings.Contains(stderr, "config.hcl:") || !strings.Contains(stderr, `"path"`) {
		t.Errorf("toolhost reload exits with %d and says %q, want the line and what was meant", code, stderr)
	}
	if err := h.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	tallies := func() string {
		o := h.post(t, "probe_tally", map[string]any{"note": "a"})
		if o.Error != nil {
			return o.Error.Code
		}
		return o.Status
	}
	eventually(t, "the host has said what is wrong", func() bool {
		return strings.Contains(h.said(), "the previous one stays in force")
	})
	if got := tallies(); got != "success" {
		t.Errorf("after a reload with a mistake a call = %s, want success as before", got)
	}
	change(asked)
	if err := h.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change is in force", func() bool { return tallies() == "PERMISSION_DENIED" })
	change(counting)
	h.ok(t, "reload")
	if got := tallies(); got != "success" {
		t.Errorf("control: after a reload that allows it a call = %s", got)
	}
}
