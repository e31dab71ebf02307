package supervisor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// preview asks for a tool's preview with a generous time limit.
func (k *kept) preview(t *testing.T, plugin, digest, name string) (tool.Preview, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	return k.Preview(ctx, plugin, digest, tool.Call{
		ID: "tc_1", Tool: name, Arguments: []byte(`{"a":1}`), Context: tool.Context{User: "ann", Ticket: []byte("ticket"), MaxOutput: tool.KiB},
	})
}

func TestPreview(t *testing.T) {
	k := keep(t, "calm")
	for _, tt := range []struct {
		tool string
		want tool.Preview
	}{
		{"echo", tool.Preview{Summary: "would do it", Content: []tool.Content{tool.Text(`{"a":1}`)}, Digest: []byte("ann 0")}}, // and no ticket
		{"no_digest", tool.Preview{Summary: "would do it", Content: []tool.Content{tool.Text("diff")}}},
		{"bad_text", tool.Preview{Summary: "would do it", Content: []tool.Content{tool.Text("a\uFFFDb")}}},
		{"deadline", tool.Preview{Summary: "would do it", Content: []tool.Content{tool.Text("false")}}}, // the clock is the host's
	} {
		got, err := k.preview(t, "calm", "", tt.tool)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("Preview(%s): %v (-want +got):\n%s", tt.tool, err, diff)
		}
	}
	if s := k.state(t, "calm"); s.Calls != 0 {
		t.Errorf("state is %+v after the previews, want no calls", s)
	}
	if _, err := k.preview(t, "nobody", "", "echo"); err == nil || tool.AsError(err).Code != tool.Unavailable {
		t.Errorf("Preview() of a plugin that is not there = %v, want unavailable", err)
	}
}

func TestPreviewsThatFail(t *testing.T) {
	for _, tt := range []struct {
		tool    string
		code    tool.Code
		message string
		hint    string
		crashed bool
	}{
		{"conflict", tool.Conflict, "it cannot", "do another", false},
		{"bad_code", tool.Failed, "it cannot", "do another", false},
		{"host_code", tool.Failed, "it cannot", "do another", false},
		{"exit", tool.PluginCrashed, `the plugin "calm" exited with code 5`, "the call was not made; the plugin is started again at the next call", true},
		{"panic", tool.PluginCrashed, `the plugin "calm" panicked`, "the call was not made", true},
		{"large", tool.ResourceExhausted, `the result of the plugin "calm" is larger than 16MiB`, "", false},
		{"many_parts", tool.OutputInvalid, "it sent a message of more than 20000 elements", "", false},
		{"parts", tool.OutputInvalid, "it sent 1001 parts of content, more than 1000", "", false},
		{"long_summary", tool.OutputInvalid, "the summary of its preview is larger than 16KiB", "", false},
		{"long_digest", tool.OutputInvalid, "the digest of its preview is larger than 1KiB", "", false},
		{"bad_summary", tool.OutputInvalid, "it sent a message that cannot be decoded", "", false},
		{"bad_kind", tool.OutputInvalid, "content 0 of its preview has the unknown kind 42", "", false},
		{"status", tool.OutputInvalid, "answered with a protocol error (FailedPrecondition)", "", false},
		{"none", tool.OutputInvalid, "answered with a protocol error (Unimplemented)", "", false},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			t.Parallel()
			k := keep(t, "calm")
			got, err := k.preview(t, "calm", "", tt.tool)
			e := tool.AsError(err)
			if e == nil || e.Code != tt.code || !strings.Contains(e.Message, tt.message) || !strings.Contains(e.Hint, tt.hint) {
				t.Fatalf("Preview() = %v (%v), want code %s, %q, hint %q", err, errors.Unwrap(err), tt.code, tt.message, tt.hint)
			}
			if !cmp.Equal(got, tool.Preview{}) {
				t.Errorf("Preview() = %+v beside the error, want nothing", got)
			}
			if strings.Contains(e.ModelText(), "/") || strings.Contains(e.ModelText(), "secret") {
				t.Errorf("the caller reads %q", e.ModelText())
			}
			k.mustCall(t, "calm", "echo") // the plugin works, or works again
			if s := k.state(t, "calm"); (s.Crashes == 1) != tt.crashed {
				t.Errorf("state is %+v, want a crash: %v", s, tt.crashed)
			}
		})
	}
}

// TestSlowPreview asks a plugin that stops on request, and one that does not.
func TestSlowPreview(t *testing.T) {
	t.Parallel()
	k := keep(t, "calm", "draining")
	k.timing.preview, k.timing.obey, k.timing.finish = 50*time.Millisecond, time.Millisecond, time.Minute
	for _, plugin := range []string{"calm", "draining"} {
		k.mustCall(t, plugin, "echo")
		_, err := k.preview(t, plugin, "", "block")
		if e := tool.AsError(err); e == nil || e.Code != tool.Timeout || e.Message != `the plugin "`+plugin+`" did not say within 50ms what the call would do` {
			t.Errorf("Preview() = %v, want that it took too long", err)
		}
	}
	// A plugin that does not stop is replaced, as after a call that is given up.
	k.timing.preview = time.Hour
	k.mustCall(t, "calm", "echo")
	first := k.live("calm")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with cancel
		_, err := k.Preview(ctx, "calm", "", tool.Call{ID: "tc_1", Tool: "ignore", Arguments: []byte(`{}`)})
		ended <- err
	}()
	k.log.await(t, "goes on with a preview")
	cancel()
	if err := <-ended; tool.AsError(err).Code != tool.Canceled {
		t.Errorf("Preview() = %v, want canceled", err)
	}
	<-first.ended
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err := k.Preview(late, "calm", "", tool.Call{ID: "tc_1", Tool: "echo", Arguments: []byte(`{}`)})
	if tool.AsError(err).Code != tool.Timeout {
		t.Errorf("Preview() = %v, want timeout by its context", err)
	}
}

// TestPreviewOfAnotherProgramIsNotAsked replaces a plugin's program after the check of a call,
// which has a digest.
func TestPreviewOfAnotherProgramIsNotAsked(t *testing.T) {
	p := Plugin{Name: "calm", Path: copyProgram(t, "calm"), Confinement: plain, Limits: sandbox.DefaultLimits()}
	k := keepPlugins(t, p)
	k.mustCall(t, "calm", "echo")
	before := k.digest("calm")
	if _, err := k.preview(t, "calm", before, "echo"); err != nil {
		t.Fatalf("Preview() = %v, want success", err)
	}
	rebuild(t, p.Path)
	if err := k.Restart(t.Context(), "calm"); err != nil {
		t.Fatal(err)
	}
	_, err := k.preview(t, "calm", before, "exit") // it would be noticed
	wantUnavailable(t, err, "has changed since the call was checked", true)
	if _, err := k.preview(t, "calm", k.digest("calm"), "echo"); err != nil {
		t.Errorf("Preview() = %v with the new digest, want success", err)
	}
	if s := k.state(t, "calm"); s.Crashes != 0 {
		t.Errorf("state is %+v, want that the plugin was not asked", s)
	}
}

// TestPreviewIsActivity lets a plugin become idle by the time of its last call
// alone.
func TestPreviewIsActivity(t *testing.T) {
	k := keep(t, "calm")
	k.mustCall(t, "calm", "echo")
	live, m := k.live("calm"), k.managers["calm"].base
	aged := time.Now().Add(-time.Hour)
	m.mu.Lock()
	live.lastUsed = aged
	m.mu.Unlock()
	if _, err := k.preview(t, "calm", "", "echo"); err != nil {
		t.Fatal(err)
	}
	if rest := m.idle(live); rest <= 0 || live.stopping {
		t.Errorf("idle() = %v, stopping %v after a preview, want that it goes on", rest, live.stopping)
	}
	m.mu.Lock()
	live.lastUsed = aged // the control: without the preview it is idle
	m.mu.Unlock()
	m.idle(live)
	<-live.ended
}
