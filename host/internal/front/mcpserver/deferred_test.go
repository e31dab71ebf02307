package mcpserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/sdk/tool"
)

// encoded returns a result as a client reads it: encoded by the SDK, with the marks replaced.
func encoded(t *testing.T, l *deferred, r tool.Result) (decoded any, message string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"id": 1, "result": l.render(operation.Outcome{ID: "tc_1", Result: r}, true)})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := l.fill(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(whole, &decoded); err != nil {
		t.Fatalf("%.200s: %v", whole, err)
	}
	return decoded, string(whole)
}

func TestLate(t *testing.T) {
	fill := strings.Repeat("a line of text\n", 2000)
	for name, text := range map[string]string{
		"plain":                    fill,
		"quotes and backslashes":   strings.Repeat(`"\`, 10_000),
		"control characters":       strings.Repeat("\x00\x1b\t\r\n\u2028\u2029", 3000),
		"other scripts":            strings.Repeat("日本語 🎉 é", 2000),
		"no UTF-8":                 strings.Repeat("a\xff\xc3", 9000),
		"HTML":                     strings.Repeat("<a&b>", 5000),
		"something like a mark":    fill + markStart + strings.Repeat("A", 26) + `"`,
		"the beginning of a mark":  fill + markStart,
		"small":                    "x",
		"small, but like a mark":   markStart + strings.Repeat("A", 26) + `"`,
		"exactly as long":          strings.Repeat("x", deferFrom),
		"one less than that":       strings.Repeat("x", deferFrom-1),
		"JSON with lines in it":    "{\n \"a\": [" + strings.Repeat("1,\n", 9000) + "1]}",
		"JSON that escapes itself": `{"a": "` + strings.Repeat(`\u0000\"`, 9000) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := tool.Result{Content: []tool.Content{tool.Text(text), tool.Text("between"), tool.Text(text)}}
			if json.Valid([]byte(text)) {
				r.Structured = json.RawMessage(text)
			}
			var l deferred
			got, message := encoded(t, &l, r)
			if strings.Contains(message, "\n") {
				t.Error("the message has more than one line")
			}
			plain := make([]any, len(r.Content))
			for i, c := range r.Content {
				plain[i] = map[string]any{"type": "text", "text": string(c.Data)}
			}
			wanted := map[string]any{"id": 1, "result": map[string]any{"_meta": map[string]any{metaCallID: "tc_1"}, "content": plain}}
			if r.Structured != nil {
				wanted["result"].(map[string]any)["structuredContent"] = r.Structured
			}
			text, err := json.Marshal(wanted)
			if err != nil {
				t.Fatal(err)
			}
			var want any
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the client reads something else (-want +got):\n%.500s", diff)
			}
			if !l.none() {
				t.Error("a part is kept that was written")
			}
		})
	}
}

// TestLateMedia checks that images and sounds of any size reach the client as the SDK writes
// them.
func TestLateMedia(t *testing.T) {
	for _, size := range []int{1, deferFrom - 1, deferFrom, deferFrom + 1, deferFrom + 2, 1 << 20} {
		data := bytes.Repeat([]byte{0xff, 0, '"', 7}, size/4+1)[:size]
		var l deferred
		got, _ := encoded(t, &l, tool.Result{Content: []tool.Content{
			{Kind: tool.KindImage, Data: data, MediaType: "image/png"}, {Kind: tool.KindAudio, Data: data, MediaType: "audio/wav"},
		}})
		text := base64.StdEncoding.EncodeToString(data)
		want := any(map[string]any{"id": 1.0, "result": map[string]any{"_meta": map[string]any{metaCallID: "tc_1"}, "content": []any{
			map[string]any{"type": "image", "mimeType": "image/png", "data": text}, map[string]any{"type": "audio", "mimeType": "audio/wav", "data": text},
		}}})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of %d bytes, the client reads something else (-want +got):\n%.500s", size, diff)
		}
		if !l.none() {
			t.Errorf("a part of %d bytes is kept that was written", size)
		}
	}
}

// TestLateInPieces checks that a message is complete whether it is written at once or in
// pieces of any size, and that only bytes that may begin a mark are held back.
func TestLateInPieces(t *testing.T) {
	text := strings.Repeat("a line of text\n", 2000)
	r := tool.Result{Content: []tool.Content{tool.Text(text), tool.Text(markStart + "A"), tool.Text(text)}, Structured: json.RawMessage(`{"a":"` + strings.Repeat("b", deferFrom) + `"}`)}
	var all deferred
	_, want := encoded(t, &all, r)
	for size := 1; size < 2*markLength; size++ {
		var l deferred
		message, err := json.Marshal(map[string]any{"id": 1, "result": l.render(operation.Outcome{ID: "tc_1", Result: r}, true)})
		if err != nil {
			t.Fatal(err)
		}
		f := filler{deferred: &l}
		var got strings.Builder
		for piece := range slices.Chunk(message, size) {
			out, err := f.fill(slices.Clone(piece))
			if err != nil {
				t.Fatal(err)
			}
			got.Write(out)
			if len(f.held) > 0 && markIn(f.held) != len(f.held) {
				t.Fatalf("%q is held back", f.held)
			}
		}
		if len(f.held) > 0 || got.String() != want || !l.none() {
			t.Fatalf("in pieces of %d it ends in %.100q, and %q is held back", size, got.String(), f.held)
		}
	}
	f := filler{deferred: &deferred{}}
	f.deferred.add([]byte("waits"), asText)
	for _, piece := range []string{`{"a":"`, `"toolhost`, `-deferred-ABC`, "abc", `"toolhost-deferred-"`, "}\n"} {
		out, err := f.fill([]byte(piece))
		if held := map[string]string{`{"a":"`: `"`, `"toolhost`: `"toolhost`, `-deferred-ABC`: `"toolhost-deferred-ABC`, `"toolhost-deferred-"`: `"`}[piece]; err != nil || string(f.held) != held {
			t.Errorf("after %q %q was written and %q is held back, %v; want %q", piece, out, f.held, err, held)
		}
	}
}

// TestLateBytesAreBounded checks that the deferred bytes are bounded, and that further parts
// are encoded in place.
func TestLateBytesAreBounded(t *testing.T) {
	var l deferred
	part := []byte(strings.Repeat("x", maxDeferred/4))
	for range 4 {
		if l.add(part, asText) == nil {
			t.Fatal("a part has no room")
		}
	}
	text := strings.Repeat("a\n", deferFrom)
	_, message := encoded(t, &deferred{}, tool.Result{Content: []tool.Content{tool.Text(text)}, Structured: json.RawMessage(`"` + strings.Repeat("s", deferFrom) + `"`)})
	if _, full := encoded(t, &l, tool.Result{Content: []tool.Content{tool.Text(text)}, Structured: json.RawMessage(`"` + strings.Repeat("s", deferFrom) + `"`)}); full != message {
		t.Errorf("beyond the bound the message is %.200s, want %.200s", full, message)
	}
	if len(l.parts) != 4 || l.bytes != maxDeferred {
		t.Errorf("%d parts of %d bytes wait, want 4 of %d", len(l.parts), l.bytes, maxDeferred)
	}
	for mark := range maps.Clone(l.parts) {
		l.take(mark)
	}
	if l.bytes != 0 {
		t.Errorf("%d bytes wait when all parts are written", l.bytes)
	}
}

// TestLateIsBounded checks that a part whose message is never written is dropped after a
// while.
func TestLateIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l deferred
		big := tool.Result{Content: []tool.Content{tool.Text(strings.Repeat("x", deferFrom))}}
		for range 3 {
			if _, err := json.Marshal(l.render(operation.Outcome{Result: big}, true)); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(l.parts); n != 3 {
			t.Fatalf("%d parts wait, want 3", n)
		}
		<-time.After(deferFor + time.Second)
		encoded(t, &l, big)
		if !l.none() {
			t.Errorf("%d parts wait that are too old", len(l.parts))
		}
	})
}
