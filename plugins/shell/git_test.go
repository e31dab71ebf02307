package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testprogram"
)

// Git that a command runs starts none of the programs that a repository names, in
// either kind of shell. Git that the test runs does.
func TestGitRunsNoProgramOfARepository(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, "fired")
	program := filepath.Join(dir, "program")
	if err := testprogram.Write(program, strings.NewReader("#!/bin/sh\necho fired >> '"+mark+"'\n")); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "r")
	git("-C", "r", "config", "core.fsmonitor", program)
	git("-C", "r", "status")
	if err := os.Remove(mark); err != nil {
		t.Fatalf("plain git has not started the program: %v", err)
	}
	for _, backend := range []string{backendHost, backendSession} {
		p, _ := startShell(t, map[string]any{"backend": backend})
		for _, call := range []map[string]any{
			{"command": "git -C '" + dir + "/r' status"},
			{"command": "git status", "cwd": dir + "/r"},
		} {
			if got := p.Call(t.Context(), "shell_exec", call); got.Error != nil {
				t.Errorf("%v: %v", call, got.Error)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Fatalf("%v with the backend %s starts the program of the repository", call, backend)
			}
		}
	}
}
