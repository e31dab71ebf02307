package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/shellfuzz"
	"github.com/toolhost/toolhost/internal/soak"
)

// canary is the content of sensitive files, and of a file outside the workspace.
const canary = "c4n4ry"

// TestNothingHappensUnasked generates lines and runs those that the default configuration
// allows through the whole host. Then it looks for effects that no person has approved: a file
// that was changed, created or removed, and the text of a secret. It does not know how the
// host reads lines.
func TestNothingHappensUnasked(t *testing.T) {
	t.Parallel()
	judged, ran := soak.Rounds(1_500, 5_000_000), soak.Rounds(75, 50_000)
	h := serveShipped(t)
	ws := filepath.Join(h.dir, "ws")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", ws).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	for name, text := range map[string]string{
		"a": "a\n", "x": "x\n", "names.txt": "a\nx\n.env\n", "src/b": "b\n", "sub/a": "touch f\n", ".env": canary, "src/.env": canary, "../secret": canary, "rm": "#!/bin/sh\ntouch f\n", "ls": "#!/bin/sh\ntouch f\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(ws, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		h.write(t, name, text)
	}
	for _, name := range []string{"rm", "ls"} {
		if err := os.Chmod(filepath.Join(ws, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := state(t, ws)
	g := shellfuzz.New(soak.Seed(t))
	seen := map[string]bool{}
	allowed, whole := 0, 0
	for i := range judged {
		line := g.Deferred()
		if i%2 == 0 {
			line = g.Line([]string{"ls", "cat a", "git status", "find . -name a", "for f in *; do cat $f; done", "ls | xargs wc -l"})
		}
		if seen[line] || strings.Contains(line, "while true") {
			continue
		}
		seen[line] = true
		if len(seen)%100_000 == 0 {
			t.Logf("%d lines so far, %d of them allowed, %d run", len(seen), allowed, min(allowed, ran))
		}
		if !h.unasked(t, line) {
			continue
		}
		if allowed++; allowed > ran {
			continue
		}
		outcome := h.post(t, "shell_exec", map[string]any{"command": line, "timeout": 5})
		if outcome.Error == nil {
			whole++
		}
		if text := asJSON(outcome); strings.Contains(text, canary) {
			t.Fatalf("%q runs unasked and shows a secret: %s", line, text)
		}
		if after := state(t, ws); after != before {
			t.Fatalf("%q ran unasked and changed the workspace:\n%s\nbefore:\n%s", line, after, before)
		}
	}
	t.Logf("%d lines, %d of them allowed, %d run, %d to their end", len(seen), allowed, min(allowed, ran), whole)
	if whole < ran/5 {
		t.Errorf("only %d lines ran to their end: the test shows little", whole)
	}
	// The test finds what it looks for.
	h.write(t, "found", "")
	if state(t, ws) == before {
		t.Error("a new file is not found")
	}
}

// TestLoopsOverLines runs loops over the lines of a file or a command, which the default
// configuration allows. Loops that read a variable that the shell or a program obeys are asked
// about, and one that comes to a secret ends there.
func TestLoopsOverLines(t *testing.T) {
	t.Parallel()
	h := serveShipped(t)
	ws := filepath.Join(h.dir, "ws")
	for name, text := range map[string]string{"a.txt": " one\\ntwo\n", "names.txt": "a.txt\n.env\n", ".env": canary} {
		h.write(t, name, text)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", `git init -q "$0" && git -C "$0" add a.txt names.txt`, ws).CombinedOutput(); err != nil {
		t.Fatalf("git: %v\n%s", err, out)
	}
	for line, want := range map[string]string{
		`git ls-files | while read f; do wc -l "$f"; done`:            "1 a.txt\n2 names.txt\n",
		`while IFS= read -r l; do echo "$l"; done < a.txt`:            " one\\ntwo\n",
		`while read l; do echo "$l"; done < a.txt`:                    "onentwo\n",
		`while read -r f; do cat "$f"; done < names.txt`:              " one\\ntwo\n",
		`git ls-files | (read -r first rest; head -c 4 "$first")`:     " one",
		`echo a.txt names.txt | while read -r _ f; do cat "$f"; done`: "a.txt\n.env\n",
	} {
		if !h.unasked(t, line) {
			t.Errorf("%q is asked about", line)
			continue
		}
		outcome := h.post(t, "shell_exec", map[string]any{"command": line})
		var said struct {
			Stdout string `json:"stdout"`
		}
		if err := json.Unmarshal([]byte(asJSON(outcome.Result.Structured)), &said); err != nil || said.Stdout != want {
			t.Errorf("%q: %s, %v; want %q", line, asJSON(outcome), err, want)
		}
		if refused := outcome.Error != nil && outcome.Error.Message == "this needs approval: cat .env"; refused != strings.Contains(line, "< names.txt") {
			t.Errorf("%q: %v", line, outcome.Error)
		}
	}
	for _, line := range []string{
		`while read PATH; do ls; done < names.txt`, `read IFS < a.txt; ls`, `echo x | while read LD_PRELOAD; do ls; done`, `read GIT_DIR < a.txt; git status`,
		`IFS=/ read -r x < a.txt; echo $x`, `while read f; do rm "$f"; done < names.txt`, `while read f; do $f; done < a.txt`, `read < a.txt; ls`,
	} {
		if h.unasked(t, line) {
			t.Errorf("%q runs unasked", line)
		}
	}
}

// unasked reports whether a command runs without approval.
func (h *host) unasked(t *testing.T, line string) bool {
	t.Helper()
	status, text, err := h.send(http.MethodPost, "/v1/explain", h.token, asJSON(map[string]any{"tool": "shell_exec", "arguments": map[string]any{"command": line}}))
	var said struct {
		Verdict string `json:"verdict"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &said)
	}
	if err != nil || status != http.StatusOK {
		t.Fatalf("explain %q: status %d, %v: %s", line, status, err, text)
	}
	return said.Verdict == "allow"
}

// state describes the files in a directory: names, sizes, modes and modification times. It
// leaves out git's own files, which may change when git reads.
func state(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == ".git" {
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err == nil {
			fmt.Fprintln(&all, path, info.Size(), info.Mode(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
