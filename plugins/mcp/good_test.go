package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestTools(t *testing.T) {
	t.Parallel()
	p := bridge(t, "good", map[string]any{"call_timeout": "90s", "prefix": "p"}, sdktest.Options{})
	echo, wait := find(t, p.Tools(), "p_echo"), find(t, p.Tools(), "p_wait")
	if echo.Tier != tool.ReadOnly || wait.Tier != tool.SideEffecting || !wait.Destructive || !echo.Foreign || echo.Timeout.Seconds() != 90 {
		t.Errorf("%+v and %+v, want the claims of the server and the time-out of the settings", echo, wait)
	}
	if add := find(t, p.Tools(), "p_add"); !strings.Contains(string(add.OutputSchema), `"sum"`) {
		t.Errorf("the schema of the results is %s", add.OutputSchema)
	}
	if got := p.Call(t.Context(), "p_add", map[string]any{"a": 1, "b": 2}); string(got.Structured) != `{"sum":3}` {
		t.Errorf("add = %s, %v", got.Structured, got.Error)
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	p := bridge(t, "good", nil, sdktest.Options{})
	got := p.Call(t.Context(), "peer_media", nil)
	want := []tool.Content{
		tool.Text("t"),
		{Kind: tool.KindImage, MediaType: "image/png", Data: []byte("png")},
		{Kind: tool.KindAudio, MediaType: "audio/wav", Data: []byte("wav")},
		{Kind: tool.KindResourceLink, MediaType: "text/html", URI: "ui://widget", Name: "widget"},
		{Kind: tool.KindResource, MediaType: "text/plain", URI: "file:///a", Data: []byte("a")},
		{Kind: tool.KindResource, MediaType: unknownType, URI: "file:///b", Data: []byte("\xff")},
		{Kind: tool.KindResource, MediaType: "text/plain", URI: "file:///c", Data: []byte("c")},
	}
	if diff := cmp.Diff(want, got.Content); diff != "" || got.Error != nil {
		t.Errorf("the content differs (-want +got):\n%s\n%v", diff, got.Error)
	}
	got = p.Call(t.Context(), "peer_fail", nil)
	if got.Error == nil || got.Error.Code != tool.Failed || got.Text() != "the disk is on fire" {
		t.Errorf("fail = %q, %v; want its text and code failed", got.Text(), got.Error)
	}
	got = p.Call(t.Context(), "peer_echo", map[string]any{"text": 7})
	if got.Error == nil {
		t.Errorf("wrong arguments are accepted: %q", got.Text())
	}
}

// Progress arrives, and a canceled call ends at once and is canceled in the server.
func TestProgressAndCancel(t *testing.T) {
	t.Parallel()
	running := bridge(t, "good", nil, sdktest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var seen tool.Progress
	got := running.Run(ctx, tool.Call{Tool: "peer_wait"}, tool.Sink{Progress: func(progress tool.Progress) {
		seen = progress
		cancel()
	}})
	if seen.Progress != 1 || seen.Total != 2 || seen.Message != `half\x1b[2J` {
		t.Errorf("progress %+v, want 1 of 2 with a visible message", seen)
	}
	if got.Error == nil || got.Error.Code != tool.Canceled {
		t.Errorf("the canceled call = %v", got.Error)
	}
	if err := running.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// Questions of the server reach the user of the call, in both eras of the protocol.
func TestAsk(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"good", "good and older"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			var question, form string
			answered := true
			p := bridge(t, script, nil, sdktest.Options{Answer: func(text string, schema json.RawMessage) (any, bool) {
				question, form = text, string(schema)
				return map[string]any{"branch": "main"}, answered
			}})
			if got := p.Call(t.Context(), "peer_ask", nil); got.Text() != "acceptmap[branch:main]" {
				t.Fatalf("ask = %q, %v", got.Text(), got.Error)
			}
			if want := `The MCP server peer asks: Which branch?\u202e`; question != want {
				t.Errorf("the question is %q, want %q", question, want)
			}
			want := `{"properties":{"branch":{"description":"Branch","title":"Branch","type":"string"},"kind":{"description":"(a: Apple)","enum":["a"],"type":"string"}},"required":["branch"],"type":"object"}`
			if form != want {
				t.Errorf("the form is %s, want %s", form, want)
			}
			answered = false
			if got := p.Call(t.Context(), "peer_ask", nil); got.Text() != "declinemap[]" {
				t.Errorf("a question that the user declines = %q, %v", got.Text(), got.Error)
			}
		})
	}
}

// The environment of the server holds what the settings say and nothing of the plugin.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	scratch, state := t.TempDir(), t.TempDir()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := bridge(t, "good", map[string]any{"env": map[string]any{"NAME": "a value", "LONG_PATH": "/a/long/path", "API_KEY": "hunter2-hunter2\"<"}, "dir": dir}, sdktest.Options{Config: sdk.Config{ScratchDir: scratch, StateDir: state}})
	got := p.Call(t.Context(), "peer_env", nil)
	var names []string
	for line := range strings.Lines(got.Text()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		names = append(names, name)
		want := map[string]string{"NAME": "a value", "LONG_PATH": "/a/long/path", "API_KEY": "[hidden]", "HOME": filepath.Join(state, "home"), "TMPDIR": scratch, "dir": dir, "PATH": os.Getenv("PATH")}[name]
		if want != "" && value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
	if text := string(got.Structured); strings.Contains(text, "hunter2") || !strings.Contains(text, "[hidden]") {
		t.Errorf("the structured result is %s", text)
	}
	if diff := cmp.Diff([]string{"PATH", "HOME", "TMPDIR", "LANG", "API_KEY", "LONG_PATH", "NAME", "GORACE", "dir"}, names); diff != "" {
		t.Errorf("the variables differ (-want +got):\n%s", diff)
	}
}

// A server that ends is started again with the next call, and its error says why it ended.
func TestCrash(t *testing.T) {
	t.Parallel()
	const token = "secret-token-of-the-test"
	p := bridge(t, "good", map[string]any{"env": map[string]any{"API_TOKEN": token}}, sdktest.Options{})
	got := p.Call(t.Context(), "peer_crash", nil)
	if got.Error == nil || got.Error.Code != tool.Failed || got.Error.Retryable {
		t.Fatalf("crash = %v, want code failed", got.Error)
	}
	for _, want := range []string{"the outcome of the call is unknown", "it ended with exit code 3", `its last lines: fatal: [hidden] is wrong\x1b[2J`} {
		if !strings.Contains(got.Error.Message, want) {
			t.Errorf("the error is %q, want %q in it", got.Error.Message, want)
		}
	}
	if got := p.Call(t.Context(), "peer_echo", map[string]any{"text": "again"}); got.Text() != "again" {
		t.Errorf("after the crash echo = %q, %v", got.Text(), got.Error)
	}
	got = p.Call(t.Context(), "peer_look", nil)
	if got.Error == nil || got.Error.Code != tool.Unavailable || !got.Error.Retryable || strings.Contains(got.Error.Message, "unknown") {
		t.Errorf("a lost call that claims to change nothing = %v, want one that may be made again", got.Error)
	}
}
