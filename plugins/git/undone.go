package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// undone lists the changes that a call discards in the files, in the index, or in both.
// The staged content of a file can differ from the file.
type undone struct {
	files []string   // the files that differ, sorted
	parts []*preview // diffs for the files and the index, from the current to the restored state
}

// undo finds the changes that restoring from source discards. source is a commit, or ""
// for the index. where is "files", "index" or "both". If paths is nil, undo compares
// everything. It refuses to discard changes to forbidden files, staged ones included.
func (r *repository) undo(ctx context.Context, where, source string, paths []string) (*undone, error) {
	u := &undone{}
	if where != "index" {
		if err := r.refuseUnseen(ctx, paths); err != nil {
			return nil, err
		}
	}
	for _, part := range []struct {
		where  string
		states []string
	}{{"files", nil}, {"index", []string{"--cached"}}} {
		if where != part.where && where != "both" {
			continue
		}
		states := part.states
		if source != "" {
			states = append(states, source)
		}
		files, err := r.differing(ctx, states...)
		if err != nil {
			return nil, err
		}
		if paths != nil {
			files = below(files, paths)
		}
		if err := r.refuseForbidden(files); err != nil {
			return nil, err
		}
		u.files = append(u.files, files...)
		shown, err := r.previewOf(ctx, "diff", r.undoFlags(), states, paths, nil)
		if err != nil {
			return nil, err
		}
		u.parts = append(u.parts, shown)
	}
	slices.Sort(u.files)
	u.files = slices.Compact(u.files)
	return u, nil
}

// below returns the files that are equal to one of the paths or below one. It changes
// files.
func below(files, paths []string) []string {
	return slices.DeleteFunc(files, func(file string) bool {
		return !slices.ContainsFunc(paths, func(path string) bool { return path == "." || within(file, path) })
	})
}

// digest identifies all discarded changes.
func (u *undone) digest() string {
	sums := make([]string, len(u.parts))
	for i, part := range u.parts {
		sums[i] = fmt.Sprintf("%x", part.sum)
	}
	return strings.Join(sums, " ")
}

// content returns the preview. It shows staged changes only if they differ from those of
// the files.
func (u *undone) content() []tool.Content {
	shown := u.parts[0].content()
	if len(u.parts) == 1 || u.parts[1].all == 0 || u.parts[1].sum == u.parts[0].sum {
		return shown
	}
	return append(append(shown, tool.Text("Staged changes:")), u.parts[1].content()...)
}
