package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/internal/testprogram"
)

// TestNothingOutlivesTheHost kills the host with SIGKILL at each stage of a plugin's life, and
// starts another host.
func TestNothingOutlivesTheHost(t *testing.T) {
	for _, tt := range []struct {
		name string
		// begin starts a host with cmd and returns the plugin's process id.
		begin func(t *testing.T, cmd *exec.Cmd) int
	}{
		{"running", running},
		{"stopped", stopped},
		{"starting", starting},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runtimeDir := shortDir(t)
			t.Setenv("XDG_RUNTIME_DIR", runtimeDir)
			config := writeConfig(t, probeBlock(""))
			host := toolhost(t.Context(), config, "mcp")
			pid := tt.begin(t, host)
			if left := entries(t, runtimeDir); len(left) == 0 {
				t.Fatalf("no socket directory below XDG_RUNTIME_DIR: the test would prove nothing")
			}
			if err := host.Process.Kill(); err != nil {
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

// running starts a host and calls the plugin.
func running(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	return pidOf(t, connectTo(t, cmd, revisions[0], nil).must(t, "probe_process", nil))
}

// stopped starts a host, calls the plugin and stops it with SIGSTOP.
func stopped(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	pid := running(t, cmd)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return pid
}

// starting starts a host whose plugin never completes its handshake.
func starting(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	silent := filepath.Join(t.TempDir(), "silent")
	if err := testprogram.Write(silent, strings.NewReader("#!/bin/sh\nexec /bin/sleep 600\n")); err != nil {
		t.Fatal(err)
	}
	cmd.Args[len(cmd.Args)-1] = writeConfig(t, `
plugin "silent" {
  path = "`+silent+`"
  tier = "read_only"
  sandbox {
    filesystem { exec = ["system"] }
  }
}
`)
	if _, err := cmd.StdinPipe(); err != nil { // otherwise the host would end with its input
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // it was killed
	pid := 0
	eventually(t, "the plugin is starting", func() bool {
		for _, child := range children(t, cmd.Process.Pid) {
			text, err := os.ReadFile("/proc/" + strconv.Itoa(child) + "/comm")
			if err == nil && strings.TrimSpace(string(text)) == "sleep" {
				pid = child
			}
		}
		return pid != 0
	})
	return pid
}

// children returns the children of a process.
func children(t *testing.T, pid int) []int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has just ended
		}
		for field := range strings.FieldsSeq(string(text)) {
			pids = append(pids, pidOf(t, field))
		}
	}
	return pids
}

// shortDir returns a temporary directory whose path is short enough for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "th") //nolint:usetesting // the path of t.TempDir contains the test's name and is too long
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

// entries lists the directories of hosts in a runtime directory.
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
