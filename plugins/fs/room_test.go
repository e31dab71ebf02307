package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/plugins/fs/internal/edit"
	"github.com/toolhost/toolhost/plugins/fs/internal/filetest"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Calls that hold much memory wait for each other, but not beyond their own deadlines.
func TestRoomIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom()
		take := func(ctx context.Context, size int64) func() {
			t.Helper()
			release, err := r.take(ctx, size)
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		half := take(t.Context(), edit.MaxBytes/2)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { // ends with ctx
			_, err := r.take(ctx, maxPatched)
			ended <- err
		}()
		synctest.Wait()
		take(t.Context(), int64(smallCall))() // blocks on nothing
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("take = %v, want that it was canceled", err)
		}
		half()
		take(t.Context(), maxPatched)()
		if !r.units.TryAcquire(roomUnits) {
			t.Error("some units are still taken")
		}
	})
}

// A file of very many lines is refused as one of very many bytes is.
func TestTooManyLines(t *testing.T) {
	lines := strings.Repeat("\n", edit.MaxLines)
	dir := filetest.Tree(t, map[string]string{"many": lines + "x\n", "most": lines, "long": strings.Repeat("\n", snapshot.MaxDiffLines), "short": "x\n"})
	p := start(t, dir, 16*tool.KiB)
	for _, tt := range []struct {
		tool string
		in   any
		want string
	}{
		{"edit_file", editCall("many", "x", "y"), "many has 2000001 lines, at most 2000000 can be edited"},
		{"apply_patch", applyPatchArgs{Patch: begin("*** Update File: many\n-x\n+y\n")}, "many: many has 2000001 lines, at most 2000000 can be edited; nothing was done"},
		{"edit_file", editCall("most", strings.Repeat("\n", 200_000), strings.Repeat("\n", 200_000)+"\n"), "The text to replace is in most 10 times, at lines 1, 200001, 400001, 600001, 800001, 1000001, 1200001, 1400001, 1600001, 1800001"},
		{"edit_file", editFileArgs{Path: "most", Edits: []fileEdit{{Replacement: edit.Replacement{Old: strings.Repeat("\n", 200_000), New: strings.Repeat("\n", 200_001), All: true}}}}, "most would have 2000010 lines, the maximum is 2000000"},
		{"diff_files", diffFilesArgs{Path: "long", Other: "short"}, "The files have 200001 lines together, at most 200000 can be compared"},
	} {
		if got := p.Call(t.Context(), tt.tool, tt.in); got.Error == nil || got.Error.Message != tt.want {
			t.Errorf("%s: %q, want %q", tt.tool, message(got), tt.want)
		}
	}
}
