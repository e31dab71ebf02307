package pipeline_test

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/sdk/tool"
)

// callWith returns what the caller receives of a result.
func callWith(t *testing.T, result tool.Result, edits ...func(*tool.Spec)) tool.Result {
	t.Helper()
	spec := echoSpec()
	for _, edit := range edits {
		edit(&spec)
	}
	p := newPipeline(t, pipeline.Options{Runner: answer(result)}, spec)
	return p.Call(t.Context(), request("echo", `{"text":"a"}`)).Result
}

func maxOutput(size tool.ByteSize) func(*tool.Spec) {
	return func(s *tool.Spec) { s.MaxOutput = size }
}

func TestOutputIsCut(t *testing.T) {
	got := callWith(t, tool.TextResult(strings.Repeat("x", 142_857))).Text()
	want := strings.Repeat("x", 40<<10) + "\n[output truncated — original size: 142,857 bytes]"
	if got != want {
		t.Errorf("a text of 142,857 bytes became %d bytes that end %q", len(got), got[max(0, len(got)-80):])
	}
}

func TestOutputBudget(t *testing.T) {
	const note = "[output truncated — original size: %s bytes]"
	image := func(size int) tool.Content {
		return tool.Content{Kind: tool.KindImage, MediaType: "image/png", Data: make([]byte, size)}
	}
	for _, tt := range []struct {
		name    string
		budget  tool.ByteSize
		content []tool.Content
		want    []tool.Content
	}{
		{"nothing", 10, nil, nil},
		{"fits exactly", 10, []tool.Content{tool.Text("0123456789")}, []tool.Content{tool.Text("0123456789")}},
		{
			"one byte more", 10,
			[]tool.Content{tool.Text("0123456789a")},
			[]tool.Content{tool.Text("0123456789\n" + strings.Replace(note, "%s", "11", 1))},
		},
		{
			"whole characters", 10,
			[]tool.Content{tool.Text("01234567😀")},
			[]tool.Content{tool.Text("01234567\n" + strings.Replace(note, "%s", "12", 1))},
		},
		{
			"ends with a line break", 4,
			[]tool.Content{tool.Text("012\n4567")},
			[]tool.Content{tool.Text("012\n" + strings.Replace(note, "%s", "8", 1))},
		},
		{
			"parts share the budget", 6,
			[]tool.Content{tool.Text("0123"), image(3), tool.Text("4567"), tool.Text("89")},
			[]tool.Content{tool.Text("0123"), image(3), tool.Text("45\n" + strings.Replace(note, "%s", "10", 1))},
		},
		{
			"a resource of text counts", 2,
			[]tool.Content{{Kind: tool.KindResource, MediaType: "text/plain", Data: []byte("0123")}},
			[]tool.Content{
				{Kind: tool.KindResource, MediaType: "text/plain", Data: []byte("01")},
				tool.Text(strings.Replace(note, "%s", "4", 1)),
			},
		},
		{"what is not UTF-8", 100, []tool.Content{tool.Text("a\xffb")}, []tool.Content{tool.Text("a\uFFFDb")}},
		{
			"no kind that there is", 100,
			[]tool.Content{{Kind: 9, Data: []byte("x")}, tool.Text("a")},
			[]tool.Content{tool.Text("[a part of the output left out: it is of no kind that can be shown]"), tool.Text("a")},
		},
		{
			"an address without end", 100,
			[]tool.Content{{Kind: tool.KindResourceLink, URI: strings.Repeat("x", 9<<10)}},
			[]tool.Content{tool.Text("[a part of the output left out: it is of no kind that can be shown]")},
		},
		{
			"a huge image", 10,
			[]tool.Content{image(11 << 20), image(1)},
			[]tool.Content{tool.Text("[image/png of 11,534,336 bytes left out: too large]"), image(1)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := callWith(t, tool.Result{Content: tt.content}, maxOutput(tt.budget))
			if got.Error != nil {
				t.Fatalf("the call failed: %v", got.Error)
			}
			if diff := cmp.Diff(tt.want, got.Content); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyPartsAreBounded(t *testing.T) {
	content := make([]tool.Content, 5000)
	for i := range content {
		content[i] = tool.Text("x")
	}
	want := append(slices.Clone(content[:1000]), tool.Text("[4,000 parts of the output left out: too many]"))
	if diff := cmp.Diff(want, callWith(t, tool.Result{Content: content}).Content); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	got := callWith(t, tool.Result{Content: content}, maxOutput(3)).Text()
	if want := "x\nx\nx\n[4,000 parts of the output left out: too many]\n[output truncated — original size: 5,000 bytes]"; got != want {
		t.Errorf("with a budget too: %q, want %q", got, want)
	}
}

func TestStructuredOutput(t *testing.T) {
	withSchema := func(s *tool.Spec) {
		s.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	}
	large := json.RawMessage(`{"n":"` + strings.Repeat("x", 142_857) + `"}`)
	for _, tt := range []struct {
		name       string
		structured string
		edits      []func(*tool.Spec)
		want       string
	}{
		{"fits", `{"n":1}`, []func(*tool.Spec){withSchema}, ""},
		{"no schema", `[1]`, nil, ""},
		{"does not fit", `{"n":"x"}`, []func(*tool.Spec){withSchema}, "output_invalid: the tool's structured result does not fit the schema that it publishes"},
		{"not JSON", `{"n":`, nil, "output_invalid: the tool's structured result is not JSON"},
		{"too large, and not JSON", `{"n":` + strings.Repeat(" ", 41<<10), []func(*tool.Spec){withSchema}, "output_invalid: the tool's structured result is not JSON"},
		{"too large, and not JSON, without a schema", strings.Repeat("]", 41<<10), nil, "output_invalid: the tool's structured result is not JSON"},
		{"too large, and does not fit", `{"n":"` + strings.Repeat("x", 41<<10) + `"}`, []func(*tool.Spec){withSchema}, "resource_exhausted: the tool's structured result has 41,992 bytes, more than its budget of 40KiB"},
		{"too large", string(large), nil, "resource_exhausted: the tool's structured result has 142,865 bytes, more than its budget of 40KiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := callWith(t, tool.Result{Structured: json.RawMessage(tt.structured)}, tt.edits...)
			if tt.want == "" && (got.Error != nil || string(got.Structured) != tt.structured) {
				t.Errorf("got %s, %v, want it as it is", got.Structured, got.Error)
			}
			if tt.want != "" && (got.Error == nil || got.Error.Error() != tt.want || got.Structured != nil) {
				t.Errorf("got %.80s, %v, want %s", got.Structured, got.Error, tt.want)
			}
		})
	}
}

func TestFactsBesideTheContent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result tool.Result
		want   string
	}{
		{"fit", tool.Result{Metadata: map[string]any{"bytes": 1}, Effects: make([]tool.Effect, 1000)}, ""},
		{"too many effects", tool.Result{Effects: make([]tool.Effect, 1001)}, "the tool reports 1001 effects"},
		{"no JSON", tool.Result{Metadata: map[string]any{"n": math.NaN()}}, "the tool's metadata cannot be written as JSON"},
		{"too much metadata", tool.Result{Metadata: map[string]any{"n": strings.Repeat("x", 70_000)}}, "the tool's metadata has 70,008 bytes"},
	} {
		got := callWith(t, tt.result)
		if tt.want == "" && got.Error != nil {
			t.Errorf("%s: %v", tt.name, got.Error)
		}
		if tt.want != "" && (got.Error == nil || got.Error.Code != tool.OutputInvalid || !strings.HasPrefix(got.Error.Message, tt.want)) {
			t.Errorf("%s: got %v, want %s", tt.name, got.Error, tt.want)
		}
	}
}

// TestFailureKeepsOutput checks that the output of a failed command is kept.
func TestFailureKeepsOutput(t *testing.T) {
	got := callWith(t, tool.Result{
		Content: []tool.Content{tool.Text("half of it")}, Error: tool.Errorf(tool.Failed, "Exit code: 1"),
	})
	if got.Text() != "half of it" || got.Error == nil || got.Error.Message != "Exit code: 1" {
		t.Errorf("got %q, %v, want the output beside the error", got.Text(), got.Error)
	}
}

// FuzzOutput checks that every text is valid and within its budget.
func FuzzOutput(f *testing.F) {
	f.Add("hello", "wörld", 7)
	f.Add("\xf0\x9f\x98", "\x80\xff", 2)
	f.Fuzz(func(t *testing.T, a, b string, budget int) {
		if budget < 1 || budget > 1<<20 {
			return
		}
		got := callWith(t, tool.Result{Content: []tool.Content{tool.Text(a), tool.Text(b)}}, maxOutput(tool.ByteSize(budget)))
		size := 0
		for _, part := range got.Content {
			if !utf8.Valid(part.Data) {
				t.Fatalf("%q is not UTF-8", part.Data)
			}
			text, _, _ := strings.Cut(string(part.Data), "[output truncated — original size: ")
			size += len(text)
		}
		cut := strings.Contains(got.Text(), "[output truncated")
		tooLong := utf8.ValidString(a) && utf8.ValidString(b) && len(a)+len(b) > budget
		if size > budget+1 || tooLong && !cut {
			t.Fatalf("%d bytes of %q and %q for a budget of %d: %q", size, a, b, budget, got.Text())
		}
	})
}

func TestNewRefuses(t *testing.T) {
	if _, err := pipeline.New(pipeline.Options{}); err == nil || err.Error() != "pipeline: the option catalog is required" {
		t.Errorf("New without a catalog: %v", err)
	}
	run := func(context.Context, string, tool.Call, tool.Sink) (tool.Result, error) { return tool.Result{}, nil }
	if _, err := pipeline.New(pipeline.Options{Runner: fakeRunner{run: run}}); err == nil {
		t.Error("New without a catalog succeeded")
	}
}
