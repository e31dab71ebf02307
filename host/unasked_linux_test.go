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
	judged, ran := soak.Rounds(3_000, 5_000_000), soak.Rounds(150, 50_000)
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
