package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds the waits of these tests. It is generous: what is measured
// is that something happens, not how fast.
const patience = 30 * time.Second

// eventually waits until done, and fails the test if that does not happen.
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

// gone reports whether a process has ended. A zombie has: nobody may have
// reaped it yet.
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

// otherProbe runs the same binary as a second plugin with tools of its own.
const otherProbe = `
plugin "other" {
  path   = "probe"
  tier   = "read_only"
  claims = "trust"
  config { prefix = "other" }
}
`

// TestKilledPluginCostsOnlyItsOwnCalls kills one of two plugins while each
// has calls inside.
func TestKilledPluginCostsOnlyItsOwnCalls(t *testing.T) {
	const each = 8
	config := writeConfig(t, probeBlock("")+otherProbe)
	s := connect(t, config, revisions[0], nil)
	victim := pidOf(t, s.must(t, "probe_process", nil))

	type answer struct {
		text   string
		failed bool
	}
	killed, spared := make(chan answer, each), make(chan answer, each)
	for range each {
		go func() { // ends with its call
			text, failed := s.call(t.Context(), t, "probe_wait", nil)
			killed <- answer{text, failed}
		}()
		go func() { // ends with its call
			text, failed := s.call(t.Context(), t, "other_wait", nil)
			spared <- answer{text, failed}
		}()
	}
	eventually(t, "all calls are inside", func() bool {
		return s.must(t, "probe_inside", nil) == strconv.Itoa(each) && s.must(t, "other_inside", nil) == strconv.Itoa(each)
	})
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range each {
		a := <-killed
		if !a.failed || !strings.Contains(a.text, "signal: killed") && !strings.Contains(a.text, "SIGKILL") {
			t.Errorf("a call of the killed plugin = %q, failed %v; want plugin_crashed", a.text, a.failed)
		}
	}
	s.must(t, "other_release", nil)
	for range each {
		if a := <-spared; a.failed || a.text != "released" {
			t.Errorf("a call of the other plugin = %q, failed %v; want it to succeed", a.text, a.failed)
		}
	}
	eventually(t, "the killed plugin is back", func() bool {
		text, failed := s.call(t.Context(), t, "probe_process", nil)
		return !failed && pidOf(t, text) != victim
	})
}
