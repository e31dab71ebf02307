package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience bounds the waits of these tests. It is generous: the tests check that something
// happens, not how fast.
const patience = 30 * time.Second

// eventually waits until done returns true. The test fails if that does not happen.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("still not: %s", what)
		}
	}
}

// gone reports whether a process has ended. A zombie has ended too.
func gone(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, state, ok := strings.Cut(string(stat), ") ")
	return ok && (state[0] == 'Z' || state[0] == 'X')
}

func pidOf(t *testing.T, text string) int {
	t.Helper()
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 1 {
		t.Fatalf("%q is no process id", text)
	}
	return pid
}

// otherProbe enables the same binary as a second plugin with its own tools.
const otherProbe = `
plugin "other" {
  path   = "probe"
  tier   = "read_only"
  claims = "trust"
  config { prefix = "other" }
}
`

// TestKilledPluginCostsOnlyItsOwnCalls kills one of two plugins while each runs calls.
func TestKilledPluginCostsOnlyItsOwnCalls(t *testing.T) {
	t.Parallel()
	const each = 8
	config := writeConfig(t, probeBlock("")+otherProbe)
	s := connect(t, config, revisions[0], nil)
	victim := pidOf(t, s.must(t, "probe_process", nil))

	killed, spared := make(chan *mcp.CallToolResult, each), make(chan *mcp.CallToolResult, each)
	wait := func(tool string, answers chan<- *mcp.CallToolResult) {
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
		if err != nil {
			t.Errorf("%s: %v", tool, err)
		}
		answers <- r
	}
	for range each {
		go wait("probe_wait", killed) // ends with its call
		go wait("other_wait", spared)
	}
	eventually(t, "all calls are inside", func() bool {
		return s.must(t, "probe_inside", nil) == strconv.Itoa(each) && s.must(t, "other_inside", nil) == strconv.Itoa(each)
	})
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range each {
		if r := <-killed; r != nil && codeOf(r) != "plugin_crashed" {
			t.Errorf("a call of the killed plugin ended as %q (%s), want plugin_crashed", codeOf(r), textOf(r))
		}
	}
	s.must(t, "other_release", nil)
	for range each {
		if r := <-spared; r != nil && (r.IsError || textOf(r) != "released") {
			t.Errorf("a call of the other plugin = %q, want it to succeed", textOf(r))
		}
	}
	if pid := pidOf(t, s.must(t, "probe_process", nil)); pid == victim {
		t.Errorf("process %d answers, which was killed", pid)
	}
}
