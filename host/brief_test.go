package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asking starts a command that is the host until a person decides, which end does. No other
// command may run before it is the host.
func asking(t *testing.T, config string) (end func()) {
	t.Helper()
	cmd := toolhost(context.WithoutCancel(t.Context()), config, "call", "write_file", "path=a.txt", "content=x")
	cmd.Stderr = nil
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(stderr)
	var id string
	for id == "" {
		line, err := said.ReadString('\n')
		if err != nil {
			_ = cmd.Wait()
			t.Fatalf("toolhost call does not ask: %v", err)
		}
		id = regexp.MustCompile(`ap_[-0-9a-f]+`).FindString(line)
	}
	return sync.OnceFunc(func() {
		if _, stderr, code := cli(config, "approvals", "show", id); code != 0 {
			t.Errorf("toolhost approvals show exits with %d: %s", code, stderr)
		}
		if _, stderr, code := cli(config, "approvals", "reject", id); code != 0 {
			t.Errorf("toolhost approvals reject exits with %d: %s", code, stderr)
			_ = cmd.Process.Kill()
		}
		rest, _ := io.ReadAll(said)
		if err := cmd.Wait(); err == nil || !strings.Contains(string(rest), "rejected") {
			t.Errorf("toolhost call ends with %v and says %q, want that it was rejected", err, rest)
		}
	})
}

// looped runs a command repeatedly until stop. A command may fail if its host ends while
// serving it.
func looped(t *testing.T, config string, args ...string) (stop func()) {
	t.Helper()
	stopped := make(chan struct{})
	var commands sync.WaitGroup
	var done atomic.Int32
	commands.Go(func() { // ends with stop
		for {
			if _, _, code := cli(config, args...); code == 0 {
				done.Add(1)
			}
			select {
			case <-stopped:
				return
			default:
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stopped)
		if commands.Wait(); done.Load() == 0 {
			t.Errorf("toolhost %s has failed each time: the test proves nothing", args)
		}
	})
}

// TestClientsBesideCommands connects a client of each era to a command that is the host, while
// other commands become the host one after the other. No client is disconnected, a host
// answers each call, and the last host is one that stays.
func TestClientsBesideCommands(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, listening+writing+counting)
	for round := range 3 {
		end := asking(t, config)
		defer end()
		var clients []*session
		for _, revision := range revisions {
			s, _, _ := relayed(t, config, revision)
			clients = append(clients, s)
		}
		before := clients[0].must(t, "probe_process", nil)
		stop := looped(t, config, "approvals", "list")
		defer stop()
		end()
		var calling sync.WaitGroup
		for i, s := range clients {
			calling.Go(func() { // ends with its calls
				for n := range 8 {
					note := fmt.Sprintf("%d.%d.%d", round, i, n)
					if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "probe_tally", Arguments: map[string]any{"note": note}}); err != nil {
						t.Errorf("call %s is answered by no host: %v", note, err)
					}
				}
			})
		}
		calling.Wait()
		var now string
		eventually(t, "the clients have a host that stays", func() bool {
			seen := map[string]bool{}
			for range 5 {
				for _, s := range clients {
					now, _ = s.call(t.Context(), t, "probe_process", nil)
					seen[now] = true
				}
			}
			return len(seen) == 1
		})
		if now == before {
			t.Errorf("the plugin is process %s as before: the first host lives, and the test proves nothing", now)
		}
		stop()
		for i, s := range clients {
			if err := s.Close(); err != nil {
				t.Errorf("client %d does not end cleanly: %v", i, err)
			}
		}
	}
}

// TestCommandEndsUnderCalls ends a command that is the host while its client has two calls
// under way: one waits for a person, one has had its effect and does not end. The host answers
// both, the question stays open, and the client continues.
func TestCommandEndsUnderCalls(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			config := writeConfig(t, listening+writing+counting)
			end := asking(t, config)
			defer end()
			s, _, _ := relayed(t, config, revision)
			asked := func() bool {
				open, _, _ := cli(config, "approvals", "list")
				return strings.Contains(open, "probe_count")
			}
			begin := func(tool string, arguments map[string]any) (answer <-chan string) {
				answered := make(chan string, 1)
				go func() { // ends with the call
					r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
					if err != nil {
						answered <- "no host: " + err.Error()
						return
					}
					answered <- codeOf(r) + ": " + textOf(r)
				}()
				return answered
			}
			h := host{dir: filepath.Dir(config)}
			running := begin("probe_tally", map[string]any{"note": "a", "hold": true})
			eventually(t, "the call has had its effect", func() bool { return len(h.counted()) == 1 })
			waiting := begin("probe_count", map[string]any{"note": "b"})
			eventually(t, "the call waits for a person", asked)
			end()
			for _, tt := range []struct {
				answer <-chan string
				want   string
			}{{running, "unknown_outcome: "}, {waiting, "unavailable: Tool execution failed: the host is stopping"}} {
				if got := <-tt.answer; !strings.HasPrefix(got, tt.want) {
					t.Errorf("a call is answered with %q, want %q", got, tt.want)
				}
			}
			s.must(t, "probe_tally", map[string]any{"note": "c"})
			if got := h.counted(); len(got) != 2 {
				t.Errorf("calls that ran: %v, want a and c", got)
			}
			if !asked() {
				t.Error("the question has not stayed")
			}
		})
	}
}
