package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/call/results"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// shelf is a directory of kept results.
type shelf struct {
	*results.Dir

	path string
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results")
	d, err := results.Open(results.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return shelf{d, path}
}

// read returns the kept result of a call by the tests' user, or "".
func (s shelf) read(t *testing.T, id string) string {
	t.Helper()
	r, err := s.Find("ann", id)
	if err != nil {
		return ""
	}
	defer r.Close()
	text, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// files returns the number of files.
func (s shelf) files(t *testing.T) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(s.path, func(_ string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// streaming returns a plugin that writes some output before its result.
func streaming(result tool.Result, texts ...string) fakeRunner {
	return fakeRunner{run: func(_ context.Context, _ string, _ tool.Call, sink tool.Sink) (tool.Result, error) {
		for i, text := range texts {
			sink.Chunk(tool.Chunk{Stream: tool.Stdout + tool.Stream(i%2), Data: []byte(text)})
		}
		return result, nil
	}}
}

// about is the metadata that refers to a whole result.
func about(handle string, cursor int, bytes int) map[string]any {
	return map[string]any{pipeline.MetaWhole: map[string]any{"handle": handle, "cursor": cursor, "bytes": int64(bytes)}}
}

// TestWholeTextIsKept truncates texts of a tool with a budget of 10 bytes. HANDLE is replaced
// by the call's id.
func TestWholeTextIsKept(t *testing.T) {
	const rest = "[the rest: result_read {\"handle\":\"HANDLE\",\"cursor\":%d}]\n[output truncated — original size: %d bytes]"
	const all = "[the whole: result_read {\"handle\":\"HANDLE\",\"cursor\":0}]\n[output truncated — original size: %d bytes]"
	text := func(parts ...string) tool.Result {
		var r tool.Result
		for _, part := range parts {
			r.Content = append(r.Content, tool.Text(part))
		}
		return r
	}
	own := text("head tail\n[output truncated — original size: 20 bytes]")
	for _, tt := range []struct {
		name     string
		result   tool.Result
		streamed []string
		want     string // what the caller reads
		kept     string
		cursor   int
		budget   tool.ByteSize
	}{
		{"fits", text("0123456789"), nil, "0123456789", "", 0, 10},
		{"is cut", text("0123456789abc"), nil, "0123456789\n" + fmt.Sprintf(rest, 10, 13), "0123456789abc", 10, 10},
		{"is cut before a character", text("01234567😀x"), nil, "01234567\n" + fmt.Sprintf(rest, 8, 13), "01234567😀x", 8, 10},
		{"parts", text("0123", "4567", "89ab"), nil, "0123\n4567\n89\n" + fmt.Sprintf(rest, 12, 12), "0123\n4567\n89ab", 12, 10},
		{"is cut between parts", text("0123456789", "ab"), nil, "0123456789\n" + fmt.Sprintf(rest, 11, 12), "0123456789\nab", 11, 10},
		{"not UTF-8", text("\xff01234567890"), nil, "\uFFFD0123456\n" + fmt.Sprintf(rest, 10, 12), "\uFFFD01234567890", 10, 10},
		{"a stream that fits", text("short"), []string{"01234", "56789"}, "short", "", 0, 10},
		{"a stream", text("short"), []string{"01234", "56789", "a"}, "short\n" + fmt.Sprintf(all, 11), "0123456789a", 0, 10},
		{"a stream of a tool that answers nothing", tool.Result{}, []string{"0123456789a"}, fmt.Sprintf(all, 11), "0123456789a", 0, 10},
		{"a stream and a text that is cut", text("0123456789abc"), []string{"0123456789", "0123456789"}, "0123456789\n" + fmt.Sprintf(all, 20), strings.Repeat("0123456789", 2), 0, 10},
		{"a stream that is shorter than the text", text("0123456789abc"), []string{"0123456789", "a"}, "0123456789\n" + fmt.Sprintf(rest, 10, 13), "0123456789abc", 10, 10},
		{
			"a stream of a tool that says that it has cut", own,
			[]string{strings.Repeat("x", 100)},
			"head tail\n[the whole: result_read {\"handle\":\"HANDLE\",\"cursor\":0}]\n[output truncated — original size: 20 bytes]",
			strings.Repeat("x", 100), 0, 99,
		},
		{"a stream longer than what memory takes", text("short"), []string{strings.Repeat("x", 70_000)}, "short", "", 0, 100_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, spec := newShelf(t), echoSpec()
			spec.MaxOutput = tt.budget
			h := newHost(t, pipeline.Options{Runner: streaming(tt.result, tt.streamed...), Results: s.Dir}, spec)
			got := h.Call(t.Context(), request("echo", `{"text":"a"}`))
			if want := strings.ReplaceAll(tt.want, "HANDLE", got.ID); got.Result.Error != nil || got.Result.Text() != want {
				t.Errorf("the caller reads %q, %v; want %q", got.Result.Text(), got.Result.Error, want)
			}
			if kept := s.read(t, got.ID); kept != tt.kept {
				t.Errorf("kept is %q, want %q", kept, tt.kept)
			}
			var want map[string]any
			files := 0
			if tt.kept != "" {
				want, files = about(got.ID, tt.cursor, len(tt.kept)), 1
			}
			if diff := cmp.Diff(want, got.Result.Metadata); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
			if n := s.files(t); n != files {
				t.Errorf("there are %d files, want %d", n, files)
			}
		})
	}
}

// TestWholeStructuredIsKept reads a structured result that exceeds the budget as text.
func TestWholeStructuredIsKept(t *testing.T) {
	s, spec := newShelf(t), echoSpec()
	spec.MaxOutput = 10
	structured := json.RawMessage(`{"n": "0123456789"}`)
	facts := map[string]any{"of": "the plugin"}
	h := newHost(t, pipeline.Options{Results: s.Dir, Runner: streaming(
		tool.Result{Structured: structured, Metadata: facts, Content: []tool.Content{tool.Text("0123456789abc")}}, strings.Repeat("x", 100),
	)}, spec)
	got := h.Call(t.Context(), request("echo", `{"text":"a"}`))
	want := fmt.Sprintf(`read it as text with result_read {"handle":%q,"cursor":0}, or ask for less in one call`, got.ID)
	if e := got.Result.Error; e == nil || e.Code != tool.ResourceExhausted || e.Hint != want {
		t.Errorf("the error is %+v, want the hint %s", e, want)
	}
	if want := "0123456789\n[output truncated — original size: 13 bytes]"; got.Result.Text() != want {
		t.Errorf("the text is %q, want %q", got.Result.Text(), want)
	}
	if kept := s.read(t, got.ID); kept != string(structured) || s.files(t) != 1 {
		t.Errorf("kept is %q in %d files, want the JSON text", kept, s.files(t))
	}
	wantFacts := about(got.ID, 0, len(structured))
	wantFacts["of"] = "the plugin"
	if diff := cmp.Diff(wantFacts, got.Result.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if len(facts) != 1 {
		t.Errorf("the plugin's own metadata became %v", facts)
	}
}

// TestWhatIsNotKeptCostsTheHandleOnly calls a tool when the disk cannot be written: only the
// handle is missing.
func TestWhatIsNotKeptCostsTheHandleOnly(t *testing.T) {
	s, spec := newShelf(t), echoSpec()
	spec.MaxOutput = 10
	plugin := streaming(tool.TextResult("0123456789abc"), strings.Repeat("x", 100), "more")
	h := newHost(t, pipeline.Options{Runner: plugin, Results: s.Dir}, spec)
	if err := os.RemoveAll(s.path); err != nil {
		t.Fatal(err)
	}
	got := h.Call(t.Context(), request("echo", `{"text":"a"}`)).Result
	if want := "0123456789\n[output truncated — original size: 13 bytes]"; got.Error != nil || got.Text() != want || got.Metadata != nil {
		t.Errorf("the caller reads %q, %v, %v; want %q", got.Text(), got.Error, got.Metadata, want)
	}
}

// TestStreamOfEachAttempt checks that the output of a failed attempt is dropped, and that a
// failed call leaves nothing.
func TestStreamOfEachAttempt(t *testing.T) {
	s, spec := newShelf(t), echoSpec()
	spec.MaxOutput = 10
	attempts := 0
	h := newHost(t, pipeline.Options{Results: s.Dir, Runner: fakeRunner{run: func(_ context.Context, _ string, call tool.Call, sink tool.Sink) (tool.Result, error) {
		attempts++
		sink.Chunk(tool.Chunk{Stream: tool.Stdout, Data: fmt.Appendf(nil, "this is attempt %d", attempts)})
		if attempts == 1 || strings.Contains(string(call.Arguments), "fails") {
			return tool.Result{}, tool.Errorf(tool.Unavailable, "not now").WithRetry(0)
		}
		return tool.TextResult("done"), nil
	}}}, spec)
	got := h.Call(t.Context(), request("echo", `{"text":"a"}`))
	if kept := s.read(t, got.ID); kept != "this is attempt 2" {
		t.Errorf("kept is %q, want what the second attempt has put out", kept)
	}
	if failed := h.Call(t.Context(), request("echo", `{"text":"fails"}`)); failed.Result.Error == nil || s.files(t) != 1 {
		t.Errorf("a call that failed with %v leaves %d files, want 1 of the call before", failed.Result.Error, s.files(t))
	}
}

// TestSameHandleAgain checks that a repeated result refers to what was kept the first time.
func TestSameHandleAgain(t *testing.T) {
	t.Run("from the cache", func(t *testing.T) {
		s, spec := newShelf(t), echoSpec()
		spec.MaxOutput, spec.Cacheable = 10, true
		h := newHost(t, pipeline.Options{Runner: answer(tool.TextResult("0123456789abc")), Results: s.Dir}, spec)
		first := h.Call(t.Context(), request("echo", `{"text":"a"}`))
		again := h.Call(t.Context(), request("echo", `{"text":"a"}`))
		if first.ID == again.ID || s.files(t) != 1 {
			t.Fatalf("the calls are %s and %s, with %d files", first.ID, again.ID, s.files(t))
		}
		if diff := cmp.Diff(first.Result, again.Result); diff != "" {
			t.Errorf("the result given again (-first +again):\n%s", diff)
		}
	})
	for _, size := range []int{100, 100_000} { // one is kept with the key, one is too long for that
		t.Run(fmt.Sprintf("with a key, %d bytes", size), func(t *testing.T) {
			s, spec := newShelf(t), addSpec()
			spec.HasPreview, spec.MaxOutput = false, tool.ByteSize(size)
			h := newHost(t, pipeline.Options{
				Runner: answer(tool.TextResult(strings.Repeat("x", size+1))), Results: s.Dir,
				Policy: rules(t, policy.Options{Mode: policy.Autonomous}),
			}, spec)
			first := h.Call(t.Context(), keyed("k", `{"text":"a"}`))
			again := h.Call(t.Context(), keyed("k", `{"text":"a"}`))
			if again.ID != first.ID || len(s.read(t, first.ID)) != size+1 || s.files(t) != 1 {
				t.Fatalf("the calls are %s and %s, with %d files", first.ID, again.ID, s.files(t))
			}
			if text := again.Result.Text(); !strings.Contains(text, `result_read {"handle":"`+first.ID+`"`) {
				t.Errorf("the call made again reads %q, want the handle", text)
			}
			if fmt.Sprint(again.Result.Metadata) != fmt.Sprint(first.Result.Metadata) {
				t.Errorf("its metadata is %v, want %v", again.Result.Metadata, first.Result.Metadata)
			}
		})
	}
}

// TestLateOutputLeavesNothing has a plugin write output after its call has timed out.
func TestLateOutputLeavesNothing(t *testing.T) {
	s, spec := newShelf(t), echoSpec()
	spec.MaxOutput, spec.Timeout = 10, time.Millisecond
	h := newHost(t, pipeline.Options{Results: s.Dir, Runner: fakeRunner{run: func(ctx context.Context, _ string, _ tool.Call, sink tool.Sink) (tool.Result, error) {
		<-ctx.Done()
		sink.Chunk(tool.Chunk{Stream: tool.Stdout, Data: make([]byte, 100)})
		return tool.Result{}, context.Cause(ctx)
	}}}, spec)
	if got := h.Call(t.Context(), request("echo", `{"text":"a"}`)).Result.Error; got == nil || got.Code != tool.Timeout {
		t.Errorf("the call = %v, want %s", got, tool.Timeout)
	}
	if n := s.files(t); n != 0 {
		t.Errorf("there are %d files, want none", n)
	}
}
