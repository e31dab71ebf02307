package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// undone is what a change undoes of the files, of the index, or of both: what is
// staged can be another thing than what the files hold.
type undone struct {
	files []string   // that differ, sorted
	parts []*preview // of the files and of the index, from what there is to what there was
}

// undo looks at what a change undoes on the way to what source holds, a commit, or ""
// for the index. Where is "files", "index" or "both"; without paths it is everything. It
// refuses to undo anything of forbidden files, also of what is staged.
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

// below are the files that are among the paths, or below one.
func below(files, paths []string) []string {
	return slices.DeleteFunc(files, func(file string) bool {
		return !slices.ContainsFunc(paths, func(path string) bool { return path == "." || within(file, path) })
	})
}

// digest identifies all that is undone.
func (u *undone) digest() string {
	sums := make([]string, len(u.parts))
	for i, part := range u.parts {
		sums[i] = fmt.Sprintf("%x", part.sum)
	}
	return strings.Join(sums, " ")
}

// content is what a preview shows: what is staged only if the files hold another thing.
func (u *undone) content() []tool.Content {
	shown := u.parts[0].content()
	if len(u.parts) == 1 || u.parts[1].all == 0 || u.parts[1].sum == u.parts[0].sum {
		return shown
	}
	return append(append(shown, tool.Text("Of what is staged:")), u.parts[1].content()...)
}
