package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// edits returns a host with a plugin whose previews fail and quote what they read.
func edits(t *testing.T, opts pipeline.Options) *host {
	t.Helper()
	spec := addSpec()
	spec.InputSchema = json.RawMessage(`{"type":"object","properties":{"file":{"type":"string","description":"a file","x-role":"path"}},"required":["file"]}`)
	if opts.Roots == nil {
		opts.Roots = []string{"/project"}
	}
	if opts.Policy == nil {
		opts.Policy = rules(t, policy.Options{})
	}
	return newHost(t, opts, spec)
}

const secret = "DB_PASSWORD=hunter2"

var errNearest = tool.Errorf(tool.NotFound, "the nearest is "+secret).WithHint("line 1 is " + secret).WithCause(errors.New(secret))

// TestPreviewOfSensitiveFileFails checks that a failed preview does not show a caller words
// about a sensitive file before a person has allowed the call.
func TestPreviewOfSensitiveFileFails(t *testing.T) {
	t.Parallel()
	h := edits(t, pipeline.Options{Runner: fakeRunner{run: echo, preview: func(context.Context, tool.Call) (tool.Preview, error) {
		return tool.Preview{}, errNearest
	}}})
	f, question := h.begin(t, request("add", `{"file":"d/.env"}`))
	told, err := json.Marshal([]any{f.Wait(t.Context(), 0), question})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(told), "hunter2") {
		t.Errorf("the caller or the approver is told %s", told)
	}
	if question.Preview != nil || question.NoPreview == "" {
		t.Errorf("the question is %+v, want no preview and why", question)
	}
	h.answer(t, question.ID, true)
	if got := f.Wait(t.Context(), operation.Forever).Result; got.Error != nil {
		t.Errorf("the approved call ends with %v", got.Error)
	}

	got := h.Call(t.Context(), request("add", `{"file":"d/notes.txt"}`)).Result.Error
	if got == nil || got.Message != errNearest.Message {
		t.Errorf("of an ordinary file the caller is told %v, want the plugin's words", got)
	}
}

// TestPreviewOfSensitiveFileIsShown checks that only the approver sees a preview with a
// sensitive file.
func TestPreviewOfSensitiveFileIsShown(t *testing.T) {
	t.Parallel()
	h := edits(t, pipeline.Options{Runner: fakeRunner{run: echo, preview: func(context.Context, tool.Call) (tool.Preview, error) {
		return tool.Preview{Summary: secret, Content: []tool.Content{tool.Text(secret)}}, nil
	}}})
	f, question := h.begin(t, request("add", `{"file":".env"}`))
	if question.Preview == nil || question.NoPreview != "" {
		t.Errorf("the question is %+v, want the preview", question)
	}
	told, err := json.Marshal([]any{f.Wait(t.Context(), 0), f.Info()})
	if err != nil || strings.Contains(string(told), "hunter2") {
		t.Errorf("the caller is told %s, %v", told, err)
	}
	h.answer(t, question.ID, false)
	if got := f.Wait(t.Context(), operation.Forever).Result; got.Error == nil || got.Error.Code != tool.Rejected || strings.Contains(got.Error.Error(), "hunter2") {
		t.Errorf("the refused call ends with %v", got.Error)
	}
}

// TestPreviewOfSensitiveFileReplaced checks that the plugin's words do not reach the caller if
// its program keeps changing or the call ends.
func TestPreviewOfSensitiveFileReplaced(t *testing.T) {
	t.Parallel()
	for _, end := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		var h *host
		h = edits(t, pipeline.Options{Runner: fakeRunner{run: echo, preview: func(_ context.Context, c tool.Call) (tool.Preview, error) {
			if end {
				cancel()
				return tool.Preview{}, errNearest
			}
			entry, err := h.opts.Catalog.Lookup("add")
			if err != nil {
				return tool.Preview{}, err
			}
			if err := h.opts.Catalog.Publish("test", c.ID+entry.Digest, []tool.Spec{entry.Spec}); err != nil {
				return tool.Preview{}, err
			}
			return tool.Preview{}, errNearest
		}}})
		got := h.Call(ctx, request("add", `{"file":".env"}`)).Result.Error
		if got == nil || strings.Contains(got.Error()+got.Hint, "hunter2") {
			t.Errorf("ended %v: the caller is told %v", end, got)
		}
		cancel()
	}
}

// TestApprovalIsForTheFileThatALinkLeadsTo approves a call for the sensitive file behind a
// link. Before the call is repeated, the link changes to another file.
func TestApprovalIsForTheFileThatALinkLeadsTo(t *testing.T) {
	t.Parallel()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	state, first, second, link := t.TempDir(), filepath.Join(ws, ".env"), filepath.Join(ws, "a", ".env"), filepath.Join(ws, "link")
	if err := os.Symlink(".env", link); err != nil {
		t.Fatal(err)
	}
	runner := fakeRunner{run: func(_ context.Context, _ string, c tool.Call, _ tool.Sink) (tool.Result, error) {
		return tool.TextResult(strings.Join(c.Context.Files.Allowed, " ")), nil
	}, preview: func(context.Context, tool.Call) (tool.Preview, error) { return tool.Preview{Summary: "reads"}, nil }}
	spec := addSpec()
	spec.InputSchema = json.RawMessage(`{"type":"object","properties":{"file":{"type":"string","description":"a file","x-role":"path"}},"required":["file"]}`)
	restarted := func() *host {
		h, err := openHost(context.WithoutCancel(t.Context()), state, pipeline.Options{
			Runner: runner, Roots: []string{ws}, Policy: rules(t, policy.Options{}), Catalog: newCatalog(t, spec),
		})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}

	h := restarted()
	_, question := h.begin(t, request("add", `{"file":"link"}`))
	if !slices.Equal(question.Sensitive, []string{first}) {
		t.Errorf("the question is about %q, want %q", question.Sensitive, first)
	}
	if shown := approval.Show(question).Text(0); !strings.Contains(strings.ReplaceAll(shown, "\n  |\\", ""), first) {
		t.Errorf("the approver is shown\n%swithout %s", shown, first)
	}
	h.stop()
	h = restarted()
	t.Cleanup(func() { h.stop() })
	h.answer(t, question.ID, true)
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a/.env", link); err != nil {
		t.Fatal(err)
	}
	f, other := h.begin(t, request("add", `{"file":"link"}`))
	if other.ID == question.ID || !slices.Equal(other.Sensitive, []string{second}) {
		t.Errorf("the call that leads elsewhere is asked about by %s about %q, want another question about %q", other.ID, other.Sensitive, second)
	}
	h.answer(t, other.ID, true)
	if got := f.Wait(t.Context(), operation.Forever).Result; got.Text() != second {
		t.Errorf("the call ends with %q, %v, want it to get %s", got.Text(), got.Error, second)
	}
	if still := h.record(t, question.ID); still.State != approval.Approved {
		t.Errorf("the first approval is %s", still.State)
	}
	if err := errors.Join(os.Remove(link), os.Symlink(".env", link)); err != nil {
		t.Fatal(err)
	}
	if got := h.Call(t.Context(), request("add", `{"file":"link"}`)).Result; got.Text() != first {
		t.Errorf("the approved call ends with %q, %v, want it to get %s", got.Text(), got.Error, first)
	}
}
