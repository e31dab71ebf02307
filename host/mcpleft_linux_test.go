package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/internal/soak"
)

// TestNothingIsLeftOfMCPServers starts a server that starts processes which do not want to end, and ends
// it in each way, with namespaces and without: 500 starts with all rounds.
func TestNothingIsLeftOfMCPServers(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(systemPython); err != nil {
		missing(t, systemPython)
	}
	for _, isolation := range []string{"auto", "basic"} {
		for _, way := range []struct {
			name, idle string
			end        func(*testing.T, *host)
		}{
			{"idle", "100ms", func(*testing.T, *host) {}},
			{"host stops", "10m", func(_ *testing.T, h *host) { h.stop() }},
			{"host is killed", "10m", func(_ *testing.T, h *host) { h.kill() }},
			{"plugin is killed", "10m", killBridge},
			{"server exits", "10m", func(t *testing.T, h *host) {
				t.Helper()
				if o := h.post(t, "forks_exit", nil); o.Status != client.Error {
					t.Errorf("a call that ends the server is %s", o.Raw)
				}
			}},
		} {
			t.Run(isolation+"/"+way.name, func(t *testing.T) {
				t.Parallel()
				mark := strconv.Itoa(1e6 + rand.IntN(1e8))
				h := serve(t, forksConfig(t, isolation, way.idle, mark))
				h.ok(t, "plugins", "accept", "forks", "--digest", pendingDigest(t, h, "forks"))
				for round := range soak.Rounds(1, 50) {
					if round > 0 {
						h.stop()
						h.restart(t)
					}
					testNothingIsLeft(t, h, mark, way.idle != "10m", way.end)
				}
			})
		}
	}
}

// TestServersAloneLeaveProcesses is the control: two processes survive the server without a host.
func TestServersAloneLeaveProcesses(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(systemPython); err != nil {
		missing(t, systemPython)
	}
	mark := strconv.Itoa(1e6 + rand.IntN(1e8))
	alone := connectTo(t, exec.CommandContext(t.Context(), systemPython, "testdata/mcp/forks.py", mark), "2025-11-25", nil)
	alone.must(t, "leave", nil)
	_ = alone.Close()
	left := withArgument(t, mark)
	for _, pid := range left {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	if len(left) != 2 {
		t.Errorf("%d processes are left of a server alone, want 2", len(left))
	}
}

func testNothingIsLeft(t *testing.T, h *host, mark string, byItself bool, end func(*testing.T, *host)) {
	t.Helper()
	if o := h.post(t, "forks_leave", nil); o.Status != client.Success || o.Result.Content != "2 processes started" {
		t.Fatalf("a call that starts processes is %s", o.Raw)
	}
	if n := len(withArgument(t, mark)); n != 3 && !byItself {
		t.Fatalf("control: %d processes of the server run, want 3", n)
	}
	end(t, h)
	eventually(t, "no process is left of the server", func() bool { return len(withArgument(t, mark)) == 0 })
}

// forksConfig writes a configuration with the server as a plugin. The mark is its argument, and that of
// all processes that it starts.
func forksConfig(t *testing.T, isolation, idle, mark string) string {
	t.Helper()
	script, err := filepath.Abs("testdata/mcp/forks.py")
	if err != nil {
		t.Fatal(err)
	}
	return writeConfig(t, fmt.Sprintf(`
server {
  listen = "127.0.0.1:0"
  grace  = "1s"
}
policy {
  mode             = "autonomous"
  actions_per_hour = "unlimited"
}
plugin "forks" {
  path         = "mcp"
  tier         = "side_effecting"
  idle_timeout = %q
  config { command = [%q, %q, %q] }
  sandbox {
    isolation = %q
    filesystem {
      exec = ["system"]
      read = [%q]
    }
  }
}
`, idle, systemPython, script, mark, isolation, filepath.Dir(script)))
}

// pendingDigest waits until tools of a plugin are pending, and returns the digest that accepts them.
func pendingDigest(t *testing.T, h *host, plugin string) string {
	t.Helper()
	var pending struct{ Digest string }
	eventually(t, "the tools of the server are pending", func() bool {
		text, _, code := h.cli("plugins", "diff", plugin, "--json")
		if code != 0 { // a slow server is started again
			return false
		}
		decode(t, text, &pending)
		return pending.Digest != ""
	})
	return pending.Digest
}

// killBridge kills the process of the plugin, not what holds it.
func killBridge(t *testing.T, h *host) {
	t.Helper()
	for _, pid := range descendants(t, h.cmd.Process.Pid) {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // empty if the process has just ended
		if program, _, _ := strings.Cut(string(command), "\x00"); filepath.Base(program) == "mcp" {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("the plugin does not run")
}
