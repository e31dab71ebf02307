package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// inside starts a call that runs until file exists, and returns when the plugin has the call.
// The channel receives the call's error.
func (k *kept) inside(t *testing.T, plugin, file string) <-chan error {
	t.Helper()
	inside := make(chan struct{})
	ended := make(chan error, 1)
	go func() { // ends with the call
		result, _, err := k.Run(context.WithoutCancel(t.Context()), plugin, "", tool.Call{ID: "tc_in", Tool: "wait_file", Arguments: strconv.AppendQuote(nil, file)},
			tool.Sink{Chunk: func(tool.Chunk) { close(inside) }})
		if err == nil && result.Text() != "done" {
			err = fmt.Errorf("the result is %q", result.Text())
		}
		ended <- err
	}()
	<-inside
	return ended
}

// TestCallsEndOnTheOldProcess changes a plugin under a call.
func TestCallsEndOnTheOldProcess(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"changed", "removed"} {
		t.Run(change, func(t *testing.T) {
			p := configured(t, "calm", `{}`)
			k := keepPlugins(t, p)
			file := filepath.Join(k.workspace, "go on")
			ended := k.inside(t, "calm", file)
			old := k.live("calm")
			if change == "removed" {
				k.change(t)
				if len(k.Plugins()) != 0 {
					t.Errorf("Plugins() = %v, want none", k.Plugins())
				}
			} else {
				k.change(t, p.with(`{"list":"more"}`))
				if pid := k.mustCall(t, "calm", "pid"); pid == strconv.Itoa(old.proc.PID()) {
					t.Error("the old process takes new calls")
				}
				if s := k.state(t, "calm"); s.Calls != 1 {
					t.Errorf("state is %+v, want the call of the old process counted", s)
				}
			}
			if isClosed(old.ended) {
				t.Fatal("the old process has ended before its call")
			}
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Errorf("the call under way: %v, want success", err)
			}
			<-old.ended
			if old.crash != nil {
				t.Errorf("the old process crashed: %+v", old.crash)
			}
		})
	}
}

// TestDrainIsBounded changes a plugin with a call that does not end. It is also
// the control of TestCallsEndOnTheOldProcess: without patience the call is lost.
func TestDrainIsBounded(t *testing.T) {
	p := configured(t, "calm", `{}`)
	k := keepPlugins(t, p)
	k.timing.drain = time.Millisecond
	ended := k.inside(t, "calm", filepath.Join(k.workspace, "never"))
	k.change(t, p.with(`{"list":"more"}`))
	if e := tool.AsError(<-ended); e == nil || e.Code != tool.PluginCrashed || !strings.Contains(e.Message, "was stopped by the host") {
		t.Errorf("the call under way: %v, want that the plugin was stopped", e)
	}
	if s := k.state(t, "calm"); s.Crashes != 0 || s.Phase != Ready {
		t.Errorf("state is %+v, want no crash", s)
	}
}

// TestCrashOfTheOldProcess lets the old process end under a call that it may
// finish.
func TestCrashOfTheOldProcess(t *testing.T) {
	p := configured(t, "calm", `{}`)
	p.Eager = true // nothing may start the old one again
	k := keepPlugins(t, p)
	ended := k.inside(t, "calm", filepath.Join(k.workspace, "never"))
	old := k.live("calm")
	k.change(t, p.with(`{"list":"more"}`))
	process, err := os.FindProcess(old.proc.PID())
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	if e := tool.AsError(<-ended); e == nil || e.Code != tool.PluginCrashed || !strings.Contains(e.Message, "was killed from outside") {
		t.Errorf("the call under way: %v, want that the plugin was killed", e)
	}
	k.mustCall(t, "calm", "echo")
}
