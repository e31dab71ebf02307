package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// flood starts a host and calls a tool until the unread answers fill the pipe.
func flood(t *testing.T) (cmd *exec.Cmd, unread io.Closer) {
	t.Helper()
	cmd = toolhost(t.Context(), writeConfig(t, probeBlock("")), "mcp")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	lines.WriteString(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`)
	for id := range 20 { // 16 KiB each; a pipe has 64 KiB
		fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"probe_text","arguments":{"n":16000}}}`+"\n", id+1)
	}
	if _, err := io.WriteString(in, lines.String()); err != nil {
		t.Fatal(err)
	}
	fd := out.(*os.File).Fd()
	eventually(t, "the pipe is full", func() bool {
		waiting, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		return waiting > 48<<10
	})
	return cmd, out
}

// TestHostEndsThoughNobodyReads stops a host whose client does not read its answers.
func TestHostEndsThoughNobodyReads(t *testing.T) {
	runtimeDir := shortDir(t)
	t.Setenv("XDG_RUNTIME_DIR", runtimeDir)
	cmd, _ := flood(t)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, cmd)
	if left := entries(t, runtimeDir); len(left) != 0 {
		t.Errorf("left after the end: %v", left)
	}
}

// TestHostEndsWithItsClient closes the reading end of the pipe while the host writes.
func TestHostEndsWithItsClient(t *testing.T) {
	runtimeDir := shortDir(t)
	t.Setenv("XDG_RUNTIME_DIR", runtimeDir)
	cmd, unread := flood(t)
	if err := unread.Close(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, cmd)
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		t.Errorf("the host was ended by %v, without its clean-up", status.Signal())
	}
	if left := entries(t, runtimeDir); len(left) != 0 {
		t.Errorf("left after the end: %v", left)
	}
}

// awaitEnd waits for a process that must end by itself.
func awaitEnd(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	eventually(t, "the host has ended", func() bool { return gone(cmd.Process.Pid) })
	_ = cmd.Wait() // the tests that need the status check it
}
