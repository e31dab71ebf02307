package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// pagesOf returns the text of all pages, each without its notes, and the last note of the first.
func pagesOf(t *testing.T, p *sdktest.Plugin, in searchContentArgs) (pages []string, note string) {
	t.Helper()
	for {
		got := p.Call(t.Context(), "search_content", in)
		if got.Error != nil || len(pages) > 2000 {
			t.Fatalf("page %d of %+v: %v", len(pages), in, got.Error)
		}
		pages = append(pages, string(got.Content[0].Data))
		if note == "" {
			note = string(got.Content[len(got.Content)-1].Data)
		}
		next, more := got.Metadata["next_cursor"].(string)
		if !more {
			return pages, note
		}
		in.Cursor = sdk.Cursor(next)
	}
}

// linesOf returns the lines of pages, each with its file, and the number of matches.
func linesOf(pages []string) (lines []string, matches int) {
	for _, page := range pages {
		file := ""
		for line := range strings.Lines(page) {
			line = strings.TrimSuffix(line, "\n")
			number, _, ok := strings.Cut(line, " ")
			switch {
			case line == "" || line == "--":
				continue
			case !ok:
				file = line
				continue
			case strings.HasSuffix(number, ":"):
				matches++
			}
			lines = append(lines, file+" "+line)
		}
	}
	return lines, matches
}

// The pages of a search are together the whole result, whatever their size.
func TestSearchContentPages(t *testing.T) {
	w := rand.New(rand.NewPCG(1, 2))
	files := map[string]string{}
	for i := range 24 {
		var text strings.Builder
		for range w.IntN(40) {
			text.WriteString([]string{"needle one\n", "hay\n", "hay\n", "grass and more\n"}[w.IntN(4)])
		}
		files[fmt.Sprintf("d%d/%s/f%02d.txt", i%3, strings.Repeat("n", i%7+1), i)] = text.String()
		files[fmt.Sprintf("d%d/%s.txt", i%3, strings.Repeat("n", i%7+1))] = "needle\n"
	}
	files[strings.Repeat("long-name-", 20)+".txt"] = "needle\n"
	dir := filetest.Tree(t, files)
	large, small := start(t, dir, 512*tool.KiB), start(t, dir, tool.KiB)
	for _, in := range []searchContentArgs{
		{Pattern: "needle"},
		{Pattern: "needle", Before: 1, After: 2},
		{Pattern: "needle", Context: 3},
		{Pattern: "one\\nneedle", Multiline: true},
		{Pattern: "needle", Path: "d1"},
		{Pattern: "needle", OutputMode: "count"},
		{Pattern: "needle", OutputMode: "files_with_matches"},
	} {
		t.Run(fmt.Sprintf("%+v", in), func(t *testing.T) {
			in.MaxResults = 100_000
			all, _ := pagesOf(t, large, in)
			want, matches := linesOf(all)
			what := "matches"
			if in.OutputMode != "" {
				want, what = strings.Split(strings.TrimSuffix(all[0], "\n"), "\n"), "files"
				matches = len(want)
			}
			for _, page := range []struct {
				p    *sdktest.Plugin
				most int
			}{{large, 2}, {large, 7}, {small, 40}, {small, 100_000}} {
				in.MaxResults = page.most
				pages, note := pagesOf(t, page.p, in)
				got, _ := linesOf(pages)
				if in.OutputMode != "" {
					got = strings.Split(strings.Join(pages, "\n"), "\n")
				}
				if strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("pages of %d are\n%s\nwant\n%s", page.most, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				if len(pages) < 2 || !strings.Contains(note, fmt.Sprintf(" of %d %s; continue with cursor=", matches, what)) {
					t.Errorf("%d pages of %d, and the first says %q, want %d %s", len(pages), page.most, note, matches, what)
				}
			}
		})
	}
}

// Of results that are not shown, 1,000 are counted, in one file or in many.
func TestSearchContentCounts(t *testing.T) {
	files := map[string]string{"one/many.txt": strings.Repeat("needle\n", 2000), "most/many.txt": strings.Repeat("needle\n", 1005)}
	for i := range 1200 {
		files[fmt.Sprintf("files/%d/%03d.txt", i%10, i)] = "needle\n"
	}
	p := start(t, filetest.Tree(t, files), 4*tool.KiB)
	for path, want := range map[string]string{"one": "more than 1005 matches", "one/many.txt": "more than 1005 matches", "most": "1005 matches", "files": "more than 1005 matches"} {
		for range 3 {
			got := p.Call(t.Context(), "search_content", searchContentArgs{Pattern: "needle", Path: path, MaxResults: 5})
			if text := got.Text(); got.Error != nil || !strings.Contains(text, "[5 of "+want+"; continue") {
				t.Errorf("%s: %v, %q, want %q", path, got.Error, text, want)
			}
		}
	}
	for _, mode := range []string{"files_with_matches", "count"} {
		got := p.Call(t.Context(), "search_content", searchContentArgs{Pattern: "needle", Path: "files", OutputMode: mode, MaxResults: 5})
		if text := got.Text(); got.Error != nil || !strings.Contains(text, "[5 of more than 1005 files; continue") {
			t.Errorf("%s: %v, %q", mode, got.Error, text)
		}
	}
	got := p.Call(t.Context(), "search_content", map[string]any{"pattern": "needle", "path": "one", "max_results": math.MaxInt})
	if got.Error != nil || got.Metadata["total"] != 2000.0 {
		t.Errorf("without a bound: %v, %v", got.Error, got.Metadata)
	}
}

// A cursor that does not belong to the search is refused, and so is one whose file is gone.
func TestSearchContentRefusesCursors(t *testing.T) {
	dir := filetest.Tree(t, map[string]string{"a.txt": "needle\nneedle\n", "b/c.txt": "needle\n"})
	p := start(t, dir, 4*tool.KiB)
	first := p.Call(t.Context(), "search_content", searchContentArgs{Pattern: "needle", MaxResults: 1})
	next, _ := first.Metadata["next_cursor"].(string)
	for _, tt := range []struct{ path, cursor, want string }{
		{".", next, ""},
		{"a.txt", next, ""},
		{"b", next, "does not belong to this call"},
		{"b/c.txt", next, "does not belong to this call"},
		{".", "1", "does not belong to this call"},
		{".", "1-" + strings.Repeat("0", 16), "does not belong to this call"},
		{".", "9223372036854775807-" + strings.TrimPrefix(next, "1-"), ""},
		{".", "x", "expected next_cursor"},
		{".", "-1", "expected next_cursor"},
	} {
		got := p.Call(t.Context(), "search_content", map[string]any{"pattern": "needle", "path": tt.path, "cursor": tt.cursor})
		if told := message(got); (tt.want == "") != (got.Error == nil) || !strings.Contains(told, tt.want) {
			t.Errorf("cursor %q below %s: %q, want %q", tt.cursor, tt.path, told, tt.want)
		}
	}
}
