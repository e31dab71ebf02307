package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/pipeline"
	"github.com/toolhost/toolhost/sdk/tool"
)

// encoded is a result as a client reads it: what the SDK makes of it, filled.
func encoded(t *testing.T, l *late, r tool.Result) (decoded any, message string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"id": 1, "result": l.render(pipeline.Outcome{ID: "tc_1", Result: r}, "2025-11-25")})
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
		"exactly as long":          strings.Repeat("x", lateFrom),
		"one less than that":       strings.Repeat("x", lateFrom-1),
		"JSON with lines in it":    "{\n \"a\": [" + strings.Repeat("1,\n", 9000) + "1]}",
		"JSON that escapes itself": `{"a": "` + strings.Repeat(`\u0000\"`, 9000) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := tool.Result{Content: []tool.Content{tool.Text(text), tool.Text("between"), tool.Text(text)}}
			if json.Valid([]byte(text)) {
				r.Structured = json.RawMessage(text)
			}
			var l late
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

// A part whose message is never written is forgotten after a while.
func TestLateIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l late
		big := tool.Result{Content: []tool.Content{tool.Text(strings.Repeat("x", lateFrom))}}
		for range 3 {
			if _, err := json.Marshal(l.render(pipeline.Outcome{Result: big}, "2025-11-25")); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(l.parts); n != 3 {
			t.Fatalf("%d parts wait, want 3", n)
		}
		<-time.After(lateFor + time.Second)
		encoded(t, &l, big)
		if !l.none() {
			t.Errorf("%d parts wait that are too old", len(l.parts))
		}
	})
}
