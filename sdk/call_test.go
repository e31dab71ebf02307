package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestEvents shows that progress and output arrive in order, before the
// result, and that nothing comes after it.
func TestEvents(t *testing.T) {
	p := sdk.New("events", "1.0.0")
	var handle *sdk.Call
	sdk.AddTool(p, spec("talk"), func(_ context.Context, c *sdk.Call, _ struct{}) (string, error) {
		handle = c
		c.Progress(tool.Progress{Progress: 1, Total: 2, Message: "half\xff"})
		if n, err := c.Write(make([]byte, 70<<10)); n != 70<<10 || err != nil {
			return "", fmt.Errorf("wrote %d: %w", n, err)
		}
		_, err := io.WriteString(c.Stderr(), "oops")
		return "done", err
	})
	running := sdktest.Start(t, p, sdktest.Options{})
	var got []string
	result := running.Run(t.Context(), tool.Call{Tool: "talk"}, tool.Sink{
		Progress: func(p tool.Progress) { got = append(got, fmt.Sprintf("%v/%v %s", p.Progress, p.Total, p.Message)) },
		Chunk:    func(c tool.Chunk) { got = append(got, fmt.Sprintf("%d: %d bytes", c.Stream, len(c.Data))) },
	})
	if result.Text() != "done" {
		t.Errorf("result = %q (%v), want %q", result.Text(), result.Error, "done")
	}
	want := []string{"1/2 half\uFFFD", "1: 32768 bytes", "1: 32768 bytes", "1: 6144 bytes", "2: 4 bytes"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	handle.Progress(tool.Progress{}) // dropped: the stream is gone
	if _, err := handle.Write([]byte("late")); err == nil {
		t.Error("Write after the call's end succeeds")
	}
}

func TestCancel(t *testing.T) {
	p := sdk.New("cancel", "1.0.0")
	ended := make(chan error, 1)
	sdk.AddTool(p, spec("wait"), func(ctx context.Context, c *sdk.Call, _ struct{}) (string, error) {
		c.Progress(tool.Progress{})
		<-ctx.Done()
		ended <- ctx.Err()
		return "", ctx.Err()
	})
	running := sdktest.Start(t, p, sdktest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := running.Run(ctx, tool.Call{Tool: "wait"}, tool.Sink{Progress: func(tool.Progress) { cancel() }})
	if result.Error == nil || result.Error.Code != tool.Canceled {
		t.Errorf("error = %v, want code %q", result.Error, tool.Canceled)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the tool's context ended with %v, want %v", err, context.Canceled)
	}
}

func TestDrain(t *testing.T) {
	p := sdk.New("drain", "1.0.0")
	entered, release := make(chan struct{}), make(chan struct{})
	sdk.AddTool(p, spec("wait"), func(context.Context, *sdk.Call, struct{}) (string, error) {
		close(entered)
		<-release
		return "done", nil
	})
	sdk.AddTool(p, spec("quick"), func(context.Context, *sdk.Call, struct{}) (string, error) { return "", nil })
	running := sdktest.Start(t, p, sdktest.Options{})
	result, drained := make(chan tool.Result, 1), make(chan error, 1)
	go func() { result <- running.Call(t.Context(), "wait", nil) }() // ends with the call
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := running.Drain(ctx); err == nil {
		t.Error("Drain returns nil while a call runs")
	}
	go func() { drained <- running.Drain(t.Context()) }() // ends with the call
	refused := running.Call(t.Context(), "quick", nil)
	for refused.Error == nil { // the plugin does not know yet
		refused = running.Call(t.Context(), "quick", nil)
	}
	if refused.Error.Code != tool.Unavailable {
		t.Errorf("a call during Drain = %v, want %q", refused.Error, tool.Unavailable)
	}
	select {
	case err := <-drained:
		t.Errorf("Drain() = %v while a call runs", err)
	default:
	}
	close(release)
	if err := <-drained; err != nil {
		t.Errorf("Drain() = %v", err)
	}
	if got := <-result; got.Text() != "done" {
		t.Errorf("the call that ran = %q (%v), want %q", got.Text(), got.Error, "done")
	}
	refused = running.Call(t.Context(), "wait", nil)
	if refused.Error == nil || refused.Error.Code != tool.Unavailable || !refused.Error.Retryable {
		t.Errorf("a call after Drain = %v, want a retryable %q", refused.Error, tool.Unavailable)
	}
}

func TestPreview(t *testing.T) {
	p := sdk.New("preview", "1.0.0")
	run := func(_ context.Context, c *sdk.Call, _ nested) (string, error) { return string(c.PreviewDigest()), nil }
	want := tool.Preview{Summary: "would do it", Content: []tool.Content{tool.Text("all")}, Digest: []byte("d")}
	sdk.AddToolWithPreview(p, spec("shows"), run, func(ctx context.Context, c *sdk.Call, _ nested) (tool.Preview, error) {
		c.Progress(tool.Progress{})
		if _, err := c.Secret(ctx, "x"); err == nil {
			return tool.Preview{}, errors.New("a preview got a secret")
		}
		_, err := c.Write([]byte("dropped"))
		return want, err
	})
	sdk.AddToolWithPreview(p, spec("refuses"), run, func(context.Context, *sdk.Call, nested) (tool.Preview, error) {
		return want, errors.New("cannot")
	})
	sdk.AddToolWithPreview(p, spec("panics"), run, func(context.Context, *sdk.Call, nested) (tool.Preview, error) { panic("x") })
	sdk.AddTool(p, spec("has_none"), run)

	running := sdktest.Start(t, p, sdktest.Options{Context: tool.Context{PreviewDigest: []byte("d")}})
	got, err := running.Preview(t.Context(), "shows", nil)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Preview: %v (-want +got):\n%s", err, diff)
	}
	if got := running.Call(t.Context(), "shows", nil).Text(); got != "d" {
		t.Errorf("PreviewDigest() in the call = %q, want %q", got, "d")
	}
	for name, code := range map[string]tool.Code{"refuses": tool.Internal, "panics": tool.Internal, "has_none": tool.NotFound, "missing": tool.NotFound} {
		var e *tool.Error
		if _, err := running.Preview(t.Context(), name, nil); !errors.As(err, &e) || e.Code != code {
			t.Errorf("Preview of %s = %v, want code %q", name, err, code)
		}
	}
	for _, s := range running.Tools() {
		if want := s.Name != "has_none"; s.HasPreview != want {
			t.Errorf("HasPreview of %s = %t, want %t", s.Name, s.HasPreview, want)
		}
	}
}

// TestCallHandle shows that the call's data from the host arrives.
func TestCallHandle(t *testing.T) {
	p := sdk.New("handle", "1.0.0")
	var got tool.Call
	sdk.AddTool(p, spec("look"), func(_ context.Context, c *sdk.Call, _ struct{}) (string, error) {
		got = tool.Call{ID: c.ID(), Context: tool.Context{
			Session: c.Session(), User: c.User(), Client: c.Client(), Traceparent: c.Traceparent(), Attempt: c.Attempt(),
			ApprovalID: c.ApprovalID(), PreviewDigest: c.PreviewDigest(), MaxOutput: c.MaxOutput(), Roots: c.Roots(), Protected: c.Protected(), UserDir: c.UserDir(),
		}}
		return "", nil
	})
	running := sdktest.Start(t, p, sdktest.Options{})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, -1, -1) // sdktest fills in missing fields
		want := tool.Call{ID: text.Draw(t, "id"), Context: tool.Context{
			Session: text.Draw(t, "session"), User: text.Draw(t, "user"), Client: text.Draw(t, "client"),
			Traceparent: text.Draw(t, "traceparent"), Attempt: rapid.IntRange(1, 9).Draw(t, "attempt"),
			ApprovalID: text.Draw(t, "approval"), PreviewDigest: rapid.SliceOf(rapid.Byte()).Draw(t, "digest"),
			MaxOutput: tool.ByteSize(rapid.Int64Min(1).Draw(t, "max")), Roots: rapid.SliceOf(text).Draw(t, "roots"),
			Protected: rapid.SliceOf(text).Draw(t, "protected"), UserDir: text.Draw(t, "dir"),
		}}
		running.Run(context.Background(), tool.Call{ID: want.ID, Tool: "look", Context: want.Context}, tool.Sink{})
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("the call as the tool sees it (-want +got):\n%s", diff)
		}
	})
}

// TestResultRoundTrip shows that any valid result arrives as it was sent.
func TestResultRoundTrip(t *testing.T) {
	p := sdk.New("round-trip", "1.0.0")
	var want tool.Result
	sdk.AddTool(p, spec("send"), func(context.Context, *sdk.Call, struct{}) (tool.Result, error) { return want, nil })
	running := sdktest.Start(t, p, sdktest.Options{})
	text := rapid.String()
	content := rapid.Custom(func(t *rapid.T) tool.Content {
		return tool.Content{
			Kind: tool.Kind(rapid.IntRange(1, 5).Draw(t, "kind")), MediaType: text.Draw(t, "media"),
			URI: text.Draw(t, "uri"), Name: text.Draw(t, "name"), Data: []byte(text.Draw(t, "data")),
		}
	})
	effect := rapid.Custom(func(t *rapid.T) tool.Effect {
		return tool.Effect{Kind: text.Draw(t, "kind"), Target: text.Draw(t, "target"), Operation: text.Draw(t, "operation")}
	})
	failure := rapid.Custom(func(t *rapid.T) *tool.Error {
		return &tool.Error{
			Code: rapid.SampledFrom(slices.DeleteFunc(tool.Codes(), tool.Code.HostOnly)).Draw(t, "code"), Message: "it " + text.Draw(t, "message"), Hint: text.Draw(t, "hint"),
			Retryable: rapid.Bool().Draw(t, "retryable"), RetryAfter: 0,
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		want = tool.Result{
			Content: rapid.SliceOf(content).Draw(t, "content"), Effects: rapid.SliceOf(effect).Draw(t, "effects"),
			Error: rapid.OneOf(rapid.Just[*tool.Error](nil), failure).Draw(t, "error"),
		}
		for key, value := range rapid.MapOf(text, text).Draw(t, "metadata") {
			if want.Metadata == nil {
				want.Metadata = map[string]any{}
			}
			want.Metadata[key] = value
		}
		if rapid.Bool().Draw(t, "structured") {
			want.Structured, _ = json.Marshal(want.Metadata)
		}
		got := running.Call(context.Background(), "send", nil)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(tool.Error{})); diff != "" {
			t.Fatalf("result (-want +got):\n%s", diff)
		}
	})
}

// TestSpecRoundTrip shows that everything that a tool says about itself
// arrives.
func TestSpecRoundTrip(t *testing.T) {
	want := tool.Spec{
		Name: "full", Aliases: []string{"whole"}, Title: "Full", Category: "tests", Description: "Everything.", Core: true, SearchHint: "all of it", Unavailable: "in tests", Foreign: true,
		Tier: tool.SideEffecting, TierWhen: []tool.TierRule{
			{Property: "depth", Equals: json.RawMessage(`3`), Tier: tool.Privileged}, {Property: "depth", Tier: tool.ReadOnly},
		},
		Idempotent: true, Cacheable: true, OpenWorld: true, Destructive: true, Asks: true, HasPreview: false,
		MaxOutput: tool.MiB, Timeout: 90e9, MaxConcurrency: 3,
	}
	p := sdk.New("specs", "1.0.0")
	sdk.AddTool(p, want, func(context.Context, *sdk.Call, nested) (nestedOut, error) { return nestedOut{}, nil })
	got := sdktest.Start(t, p, sdktest.Options{}).Tools()
	if diff := cmp.Diff(p.Tools(), got); diff != "" {
		t.Errorf("tools after the wire (-want +got):\n%s", diff)
	}
	want.InputSchema, want.OutputSchema = got[0].InputSchema, got[0].OutputSchema
	if diff := cmp.Diff([]tool.Spec{want}, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

type nestedOut struct {
	N int `json:"n"`
}
