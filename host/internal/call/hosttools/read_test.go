package hosttools_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/hosttools"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// giving returns a tool function that returns the given text.
func giving(text string) func(context.Context, tool.Call, tool.Sink) (tool.Result, error) {
	return func(context.Context, tool.Call, tool.Sink) (tool.Result, error) { return tool.TextResult(text), nil }
}

// numbered returns n bytes of distinct lines, with characters of all encoded lengths.
func numbered(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d aä€😀\n", i)
	}
	return b.String()[:n]
}

// readAll reads part after part as the tool suggests, and returns the joined text.
func readAll(t *testing.T, h *host, handle string, cursor int, limit int) (text string, parts int) {
	t.Helper()
	for {
		arguments := map[string]any{"handle": handle, "cursor": cursor}
		if limit > 0 {
			arguments["limit"] = limit
		}
		got := h.call(t, ann, catalog.ResultRead, arguments).Result
		if got.Error != nil || len(got.Content) != 2 {
			t.Fatalf("result_read(%v) = %+v, want two parts", arguments, got)
		}
		data, last := got.Content[0].Data, string(got.Content[1].Data)
		if !utf8.Valid(data) || limit > 0 && len(data) > limit || len(data) > 40<<10 {
			t.Fatalf("a part has %d bytes for a limit of %d, or is not UTF-8", len(data), limit)
		}
		text += string(data)
		parts++
		next, more := got.Metadata["next_cursor"].(int64)
		if !more {
			if !strings.HasSuffix(last, "; this was the end]") {
				t.Errorf("the last line is %q", last)
			}
			return text, parts
		}
		if want := "the rest: " + readOn(handle, int(next)) + "]"; !strings.HasSuffix(last, want) || int(next) != cursor+len(data) {
			t.Fatalf("the last line is %q after %d bytes from %d, want %q", last, len(data), cursor, want)
		}
		cursor = int(next)
	}
}

func TestReadOn(t *testing.T) {
	whole := numbered(200_000)
	h := open(t, options{run: giving(whole)})
	cut := h.call(t, ann, "look", nil)
	lines := strings.Split(cut.Result.Text(), "\n")
	at := cut.Result.Metadata["whole_result"].(map[string]any)["cursor"].(int)
	if want := []string{"[the rest: " + readOn(cut.ID, at) + "]", "[output truncated — original size: 200,000 bytes]"}; cmp.Diff(want, lines[len(lines)-2:]) != "" {
		t.Fatalf("the text that was cut ends in %q, want %q", lines[len(lines)-2:], want)
	}
	head, _, _ := strings.Cut(cut.Result.Text(), "[the rest: ")
	rest, _ := readAll(t, h, cut.ID, at, 0)
	if whole != strings.TrimSuffix(head, "\n")+rest && whole != head+rest {
		t.Errorf("the head and the rest are not the whole: %d and %d bytes", len(head), len(rest))
	}
	for _, limit := range []int{0, 4, 7, 1000} {
		of := whole
		if limit == 4 || limit == 7 {
			of = whole[198_000:] // characters begin at each place in a part
			for !utf8.RuneStart(of[0]) {
				of = of[1:]
			}
		}
		if got, parts := readAll(t, h, cut.ID, len(whole)-len(of), limit); got != of {
			t.Errorf("in %d parts of %d bytes at most the text is another one: %d bytes, want %d", parts, limit, len(got), len(of))
		}
	}
	for _, row := range h.rows(t, catalog.ResultRead) {
		if row.Plugin != "toolhost" || row.Tier != tool.ReadOnly || row.Status != "success" || row.Verdict != "allow" {
			t.Fatalf("the journal has %+v", row)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	h := open(t, options{run: giving(numbered(100_000))})
	id := h.call(t, ann, "look", nil).ID
	bob := auth.Caller{User: "bob", Client: "test", Roles: auth.Agent}
	root := auth.Caller{User: "root", Client: "test", Roles: auth.Admin}
	for _, tt := range []struct {
		name      string
		by        auth.Caller
		arguments map[string]any
		code      tool.Code
		says      string
	}{
		{"another user's", bob, map[string]any{"handle": id}, tool.NotFound, "kept for 1h0m0s"},
		{"another user's, for an admin", root, map[string]any{"handle": id}, tool.NotFound, "kept for 1h0m0s"},
		{"none", ann, map[string]any{"handle": "tc_01890a5d-ac96-774b-bcce-b302099a8057"}, tool.NotFound, "make the call"},
		{"a path", ann, map[string]any{"handle": "../../journal.key"}, tool.NotFound, "kept for 1h0m0s"},
		{"beyond the end", ann, map[string]any{"handle": id, "cursor": 100_001}, tool.InvalidArgument, "expected 0 to 100000"},
		{"no handle", ann, map[string]any{}, tool.InvalidArgument, "handle"},
		{"a cursor below 0", ann, map[string]any{"handle": id, "cursor": -1}, tool.InvalidArgument, "cursor"},
		{"a limit that fits no character", ann, map[string]any{"handle": id, "limit": 3}, tool.InvalidArgument, "limit"},
		{"a limit that is too large", ann, map[string]any{"handle": id, "limit": 40<<10 + 1}, tool.InvalidArgument, "limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantError(t, "result_read", h.call(t, tt.by, catalog.ResultRead, tt.arguments).Result.Error, tt.code, tt.says)
		})
	}
	got := h.call(t, ann, catalog.ResultRead, map[string]any{"handle": id, "cursor": 100_000}).Result
	if got.Error != nil || got.Text() != "\n[bytes 100000 to 100000 of 100000; this was the end]" {
		t.Errorf("at the end result_read = %q, %v", got.Text(), got.Error)
	}
}

// TestReadBytesThatAreNoText reads output that is not UTF-8, and checks that no part repeats.
func TestReadBytesThatAreNoText(t *testing.T) {
	h := open(t, options{run: func(_ context.Context, _ tool.Call, sink tool.Sink) (tool.Result, error) {
		sink.Chunk(tool.Chunk{Stream: tool.Stdout, Data: []byte(strings.Repeat("a\xff", 30_000) + "\xf0\x9f")})
		return tool.TextResult("done"), nil
	}})
	got := h.call(t, ann, "look", nil)
	text, cursor := "", int64(0)
	for more := true; more; {
		part := h.call(t, ann, catalog.ResultRead, map[string]any{"handle": got.ID, "cursor": cursor, "limit": 1001}).Result
		if part.Error != nil || len(part.Content[0].Data) > 1001 {
			t.Fatalf("result_read = %+v", part)
		}
		text += string(part.Content[0].Data)
		cursor, more = part.Metadata["next_cursor"].(int64)
	}
	if want := strings.Repeat("a\uFFFD", 30_000) + "\uFFFD\uFFFD"; text != want {
		t.Errorf("the text has %d bytes, want %d: %q", len(text), len(want), text[:20])
	}
}

// FuzzPart checks that the parts of any bytes are valid text, fit the limit and are complete.
func FuzzPart(f *testing.F) {
	f.Add([]byte("hello, wörld 😀"), 4)
	f.Add([]byte("\xf0\x9f\x98a\xff"), 5)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		if limit < utf8.UTFMax || limit > 1<<15 {
			return
		}
		var got []byte
		for cursor := int64(0); cursor < int64(len(data)); {
			text, next, err := hosttools.Part(bytes.NewReader(data), int64(len(data)), cursor, limit)
			if err != nil || next <= cursor || len(text) > limit || !utf8.Valid(text) {
				t.Fatalf("Part of %q at %d = %q, %d, %v", data, cursor, text, next, err)
			}
			got, cursor = append(got, text...), next
		}
		if want := string([]rune(string(data))); string(got) != want {
			t.Fatalf("the parts of %q are %q, want %q", data, got, want)
		}
	})
}

func TestReadAfterARestart(t *testing.T) {
	dir, whole := t.TempDir(), numbered(50_000)
	h := open(t, options{dir: dir, run: giving(whole)})
	id := h.call(t, ann, "look", nil).ID
	h.stop()
	h = open(t, options{dir: dir, mode: policy.ReadOnly}) // in which these tools still run
	if got, _ := readAll(t, h, id, 0, 0); got != whole {
		t.Errorf("after a restart the text has %d bytes, want %d", len(got), len(whole))
	}
}

func TestExplainAndRefusedOptions(t *testing.T) {
	h := open(t, options{})
	got, err := h.Explain(request(ann, catalog.ResultRead, map[string]any{"handle": "tc_x"}))
	if err != nil || got.Plugin != "toolhost" || got.Verdict.String() != "allow" || got.Change != "" {
		t.Errorf("Explain = %+v, %v; want it allowed, and nothing to change", got, err)
	}
	for _, opts := range []hosttools.Options{{}, {Pipeline: h.Pipeline, Approvals: h.approvals}} {
		if _, err := hosttools.New(opts); err == nil {
			t.Errorf("New(%+v) succeeded", opts)
		}
	}
	if _, _, err := h.own.Run(t.Context(), "toolhost", "", tool.Call{Tool: "none"}, tool.Sink{}); err == nil {
		t.Error("a tool that there is not can be run")
	}
}
