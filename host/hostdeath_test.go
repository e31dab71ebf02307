package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestNothingOutlivesTheHost kills the host with SIGKILL while a plugin runs
// and while it is stopped, and starts another host.
func TestNothingOutlivesTheHost(t *testing.T) {
	for _, tt := range []struct {
		name string
		stop bool
	}{{"running", false}, {"stopped", true}} {
		t.Run(tt.name, func(t *testing.T) {
			runtimeDir := shortDir(t)
			t.Setenv("XDG_RUNTIME_DIR", runtimeDir)
			config := writeConfig(t, probeBlock(""))
			s := connect(t, config, revisions[0], nil)
			pid := pidOf(t, s.must(t, "probe_process", nil))
			if left := entries(t, runtimeDir); len(left) == 0 {
				t.Fatalf("no socket directory below XDG_RUNTIME_DIR: the test would prove nothing")
			}
			if tt.stop {
				if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.host.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the plugin is gone", func() bool { return gone(pid) })
			if out, err := toolhost(t.Context(), config, "call", "probe_process").Output(); err != nil {
				t.Fatalf("the next host: %v\n%s", err, out)
			}
			if left := entries(t, runtimeDir); len(left) != 0 {
				t.Errorf("socket directories are left after the next start: %v", left)
			}
		})
	}
}

// shortDir is a temporary directory whose path leaves room for that of a
// socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "th")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// entries lists the directories of hosts below a runtime directory.
func entries(t *testing.T, runtimeDir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(runtimeDir, "toolhost", "*"))
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, path := range found {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			dirs = append(dirs, path)
		}
	}
	return dirs
}
