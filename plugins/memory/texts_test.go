package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// TestCasesTexts checks the texts of the table of texts that callers rely on
// which the tools for notes write.
func TestCasesTexts(t *testing.T) {
	dir := os.Getenv("TOOLHOST_CASES")
	if dir == "" {
		dir = filepath.Join("testdata", "cases")
	}
	data, err := os.ReadFile(filepath.Join(dir, "texts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Prefix string
		Texts  []struct {
			When, Text string
			Code       tool.Code
		}
	}
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil)
	p.must("memory_save", args{"key": "drink", "content": "I like green tea"}, nil)
	id := p.save(args{"content": "I like green apples"})
	ran := 0
	for _, row := range table.Texts {
		var r tool.Result
		want := row.Text
		switch row.When {
		case "memory saved under a key":
			r, want = p.must("memory_save", args{"key": "food", "content": "I like bread"}, nil), strings.ReplaceAll(want, "{key}", "food")
		case "nothing found in memory":
			r = p.must("memory_search", args{"query": "submarine"}, nil)
		case "memories found":
			r = p.must("memory_search", args{"query": "green tea"}, nil)
			head, line, _ := strings.Cut(want, "- ")
			want = strings.ReplaceAll(head, "{n}", "2")
			for _, note := range [][2]string{{"drink", "I like green tea"}, {id, "I like green apples"}} {
				want += strings.NewReplacer("{key or note_id}", note[0], "{text}", note[1]).Replace("- "+line) + "\n"
			}
			want = strings.TrimSuffix(want, "\n")
		case "a required argument is missing":
			r, want = p.Call(t.Context(), "memory_delete", args{}), strings.ReplaceAll(want, "{name}", "note_id")
		default:
			continue
		}
		ran++
		t.Run(row.When, func(t *testing.T) {
			got := r.Text()
			if r.Error != nil {
				got, _, _ = strings.Cut(r.Error.ModelText(), "\n")
				want = table.Prefix + want
			}
			if code := codeOf(r); got != want || code != row.Code {
				t.Errorf("a model reads %q, %q, want %q, %q", got, code, want, row.Code)
			}
		})
	}
	t.Logf("ran %d of %d rows", ran, len(table.Texts))
	if ran != 4 {
		t.Errorf("ran %d rows, want the 4 that these tools write", ran)
	}
}
