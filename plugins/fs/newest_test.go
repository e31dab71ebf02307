package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The newest entries are those of a full sort, and few others are kept.
func TestNewest(t *testing.T) {
	w := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		n := &newest{most: 1 + w.IntN(20)}
		var all []datedLine
		for i := range w.IntN(500) {
			line := datedLine{fmt.Sprint(i), time.Unix(int64(w.IntN(100)), 0)}
			all = append(all, line)
			if n.add(line.text, line.modified); len(n.kept) >= 2*n.most {
				t.Fatalf("%d lines are kept for %d", len(n.kept), n.most)
			}
		}
		slices.SortStableFunc(all, func(a, b datedLine) int { return b.modified.Compare(a.modified) })
		var want []string
		for _, line := range all[:min(len(all), n.most)] {
			want = append(want, line.text)
		}
		if got := n.lines(); !slices.Equal(got, want) {
			t.Fatalf("the newest %d are %q, want %q", n.most, got, want)
		}
	}
	n := &newest{most: math.MaxInt / 2}
	for range 10_000 {
		if n.add(strings.Repeat("x", 4<<10), time.Time{}); n.size > 2*maxNewest {
			t.Fatalf("%d bytes are kept, want at most %d", n.size, 2*maxNewest)
		}
	}
	if got := len(n.lines()); got != maxNewest>>12 {
		t.Errorf("%d lines remain, want %d", got, maxNewest>>12)
	}
}

// A page says how many matches there are, as far as they are counted or sorted.
func TestSearchFilesCounts(t *testing.T) {
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("f%02d", i)] = ""
	}
	dir := filetest.Tree(t, files)
	for i := range 30 {
		at := time.Unix(int64(1_000_000+i%7), 0)
		if err := os.Chtimes(fmt.Sprintf("%s/f%02d", dir, i), at, at); err != nil {
			t.Fatal(err)
		}
	}
	w := workspaceOf(t, dir, 4*tool.KiB)
	w.maxCounted = 10
	for _, tt := range []struct {
		pattern, sort string
		limit         int
		cursor        sdk.Cursor
		want          string
	}{
		{"f*", "name", 2, "", "f00\nf01\n[1-2 of more than 13; continue with cursor=\"2\"]"},
		{"f*", "name", 2, "18", "f18\nf19\n[19-20 of 30; continue with cursor=\"20\"]"},
		{"f0*", "name", 2, "", "f00\nf01\n[1-2 of more than 10; continue with cursor=\"2\"]"},
		{"f0*", "modified", 3, "", "f06\nf05\nf04\n[1-3 of 10; continue with cursor=\"3\"]"},
		{"f0*", "modified", 3, "6", "f01\nf08\nf00\n[7-9 of 10; continue with cursor=\"9\"]"},
		{"f0*", "modified", 3, "9", "f07"},
		{"f0*", "modified", math.MaxInt, "", "f06\nf05\nf04\nf03\nf02\nf09\nf01\nf08\nf00\nf07"},
		{"f0*", "modified", 3, "9223372036854775807", "[nothing at cursor=\"9223372036854775807\": the list has 10 entries now; start again without cursor]"},
		{
			"f*", "modified", 2, "",
			"f06\nf05\n[1-2 of more than 10; continue with cursor=\"2\"]\n[only the first 10 matches in the order of names were sorted; use a narrower pattern or path]",
		},
		{"none", "modified", 2, "", "[nothing found]"},
	} {
		got, err := searchFiles(t.Context(), w, searchFilesArgs{Pattern: tt.pattern, Path: ".", Sort: tt.sort, Type: "any", Args: page.Args{Limit: tt.limit, Paged: sdk.Paged{Cursor: tt.cursor}}})
		if err != nil || got.Text() != tt.want {
			t.Errorf("search_files(%s) by %s from %q = %q, %v, want %q", tt.pattern, tt.sort, tt.cursor, got.Text(), err, tt.want)
		}
	}
}
