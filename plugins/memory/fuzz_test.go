package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Any query is answered, in every mode: no text of a caller is read as an
// expression of the database.
func FuzzSearch(f *testing.F) {
	for _, seed := range []string{`garden "garden gate" gat*`, `"`, `""*`, `a" OR "b`, "NEAR(a b)", "-a ^b c:d", "東京* \"東\"", "\x00\xff", "* *"} {
		f.Add(seed)
	}
	p := sdktest.Start(f, newPlugin(), sdktest.Options{Context: tool.Context{UserDir: f.TempDir()}})
	if r := p.Call(f.Context(), "memory_save", args{"content": "the garden gate 東京"}); r.Error != nil {
		f.Fatal(r.Error)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, mode := range []string{"hybrid", "vector", "keyword"} {
			r := p.Call(t.Context(), "memory_search", args{"query": query, "mode": mode})
			if r.Error != nil && (r.Error.Code != tool.InvalidArgument || strings.TrimSpace(query) != "") {
				t.Errorf("memory_search(%q) by %s = %v: %v", query, mode, r.Error, r.Error.Unwrap())
			}
		}
	})
}

// An import of any text brings in notes or reports a mistake.
func FuzzImport(f *testing.F) {
	for _, seed := range []string{`{"content":"one"}`, "{}\n{", `{"content":"x","note_id":"note-1"}`, `{"content":"x","seq":-1,"created":"2024-01-01"}`, `[1]`, "null"} {
		f.Add(seed)
	}
	p := sdktest.Start(f, newPlugin(), sdktest.Options{Context: tool.Context{UserDir: f.TempDir()}})
	f.Fuzz(func(t *testing.T, data string) {
		r := p.Call(t.Context(), "memory_import", args{"data": data, "on_conflict": "replace"})
		var out imported
		if r.Error == nil && json.Unmarshal(r.Structured, &out) != nil || r.Error != nil && r.Error.Code != tool.InvalidArgument {
			t.Errorf("memory_import(%q) = %s, %v: %v", data, r.Structured, r.Error, r.Error.Unwrap())
		}
	})
}

func TestPoint(t *testing.T) {
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		text string
		sign int
		end  bool
		want string // "" is an error
	}{
		{"2026-01-02", 0, false, "2026-01-02T00:00:00Z"},
		{"2026-01-02", 0, true, "2026-01-03T00:00:00Z"},
		{"2026-01-02T03:04:05+02:00", 0, true, "2026-01-02T01:04:05Z"},
		{"30d", 1, true, "2026-04-30T12:00:00Z"},
		{"1d12h", -1, false, "2026-03-30T00:00:00Z"},
		{"90m", -1, false, "2026-03-31T10:30:00Z"},
		{"30d", 0, true, ""},
		{"0d", 1, true, ""},
		{"-5h", 1, true, ""},
		{"99999999d", 1, true, ""},
		{"40000d", 1, true, ""},
		{"1000000h", 1, true, ""},
		{"0000-01-01", 0, false, ""},
		{"tomorrow", 1, false, ""},
		{"d", 1, false, ""},
	} {
		got, err := point("since", tt.text, now, tt.sign, tt.end)
		if shown := stamp(got); shown != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("point(%q) = %q, %v, want %q", tt.text, shown, err, tt.want)
		}
	}
	if got, err := point("since", "", now, 0, false); err != nil || !got.IsZero() {
		t.Errorf("point(\"\") = %v, %v", got, err)
	}
}
