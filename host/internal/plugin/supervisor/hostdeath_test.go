package supervisor

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// hostEnv makes this test binary a host for the named plugin. Tests kill it.
const hostEnv = "TOOLHOST_TEST_HOST"

// runTestHost starts a plugin that reports its process id and runs forever.
func runTestHost(program string) {
	launcher, err := sandbox.NewLauncher()
	must(err)
	dir, name := filepath.Split(program)
	s, err := New(Options{
		Plugins:  []Plugin{{Name: name, Path: program, Confinement: sandbox.Confinement{Isolation: sandbox.Off}, Limits: sandbox.DefaultLimits(), PassEnv: []string{pidFileEnv}}},
		Launcher: launcher, StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "r"),
	})
	must(err)
	_, _, err = s.Run(context.Background(), name, "", tool.Call{ID: "tc_1", Tool: os.Getenv("TOOLHOST_TEST_TOOL"), Arguments: []byte(`{"Calls":1}`)}, tool.Sink{})
	must(err)
	hang()
}

func TestNothingOutlivesTheHost(t *testing.T) {
	for _, tt := range []struct{ name, mode, tool string }{
		{"while a plugin starts", "silent", "echo"},
		{"while a plugin is configured", "hangconfigure", "echo"},
		{"while a call runs", "stubborn", "block"},
		{"while a plugin with a child idles", "stubborn", "fork"},
		{"while a plugin is stopped", "stubborn", "stop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := shortDir(t)
			plugin := filepath.Join(dir, tt.mode)
			if err := os.Rename(copyProgram(t, tt.mode), plugin); err != nil {
				t.Fatal(err)
			}
			pids := filepath.Join(dir, "pids")
			if err := syscall.Mkfifo(pids, 0o600); err != nil {
				t.Fatal(err)
			}
			host := exec.CommandContext(t.Context(), testBinary)
			host.Env = append(os.Environ(), hostEnv+"="+plugin, "TOOLHOST_TEST_TOOL="+tt.tool, pidFileEnv+"="+pids)
			host.Stderr = os.Stderr
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			pipe, err := os.Open(pids) // until the plugin has opened it too
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			line, err := bufio.NewReader(pipe).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if err := host.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = host.Wait()
			var orphan int // a process that a plugin started in its own session
			for i, field := range strings.Fields(line) {
				pid, err := strconv.Atoi(field)
				if err != nil {
					t.Fatal(err)
				}
				if i > 0 {
					orphan = pid
					continue
				}
				waitGone(t, pid)
			}
			next, err := process.OpenRunDir(filepath.Join(dir, "r"))
			if err != nil {
				t.Fatal(err)
			}
			if err := next.Close(); err != nil {
				t.Fatal(err)
			}
			if orphan != 0 {
				waitGone(t, orphan)
			}
			if left, _ := os.ReadDir(filepath.Join(dir, "r")); len(left) > 0 {
				t.Errorf("the dead host's %v is still there", left)
			}
		})
	}
}

// waitGone waits until a process has ended; a kill takes a moment.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	for tick, end := time.Tick(10*time.Millisecond), time.After(30*time.Second); !gone(pid); {
		select {
		case <-tick:
		case <-end:
			t.Fatalf("process %d outlived its host", pid)
		}
	}
}

// shortDir is a temporary directory that is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "th") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
