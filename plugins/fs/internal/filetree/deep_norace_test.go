//go:build !race

package filetree_test

import (
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
)

// It examines many descriptors, which takes long under the race detector.

// In a tree of any depth, few directories are open at a time, and none stays open; closed ones
// are still reached.
func TestFewAreOpen(t *testing.T) {
	files := map[string]string{}
	want := []string{}
	for depth := range 200 {
		for _, name := range []string{"a.txt", "n/x.txt", "z.txt", "zz/y.txt"} {
			path := strings.Repeat("d/", depth) + name
			files[path] = path
			want = append(want, path)
		}
	}
	slices.SortFunc(want, filetree.Compare)
	r := openRoots(t, filetest.Tree(t, files))
	tr, err := filetree.Open(r, ".", filetree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := descriptors(t)
	most := 0
	var got []string
	read := func(e filetree.Entry) {
		f, err := e.Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		most = max(most, descriptors(t)-before)
		content, err := io.ReadAll(f)
		info, infoErr := e.Info()
		if string(content) != e.Path() || info.Size != f.Size() || err != nil || infoErr != nil {
			t.Errorf("%s holds %q, %v, %v", e.Path(), content, err, infoErr)
		}
		got = append(got, e.Path())
	}
	for e, err := range tr.Walk(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if !e.IsDir() {
			read(e)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Walk (-want +got):\n%s", diff)
	}
	var mu sync.Mutex
	got = nil
	visit := func(e filetree.Entry, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
			return
		}
		read(e)
	}
	if err := tr.Each(t.Context(), []filetree.Visit{visit, visit, visit, visit}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, filetree.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Each (-want +got):\n%s", diff)
	}
	if most > 48 {
		t.Errorf("%d files were open at a time, want at most 48", most)
	}
	for range tr.Walk(t.Context()) {
		break
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
	tr.Close()
	if after := descriptors(t); after != max(before-1, 0) {
		t.Errorf("%d files are open after Close, want %d", after, before-1)
	}
}
