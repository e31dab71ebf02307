package main

import (
	"context"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// marked returns the files of the index that git ls-files marks with one of the letters.
func (r *repository) marked(ctx context.Context, flag, letters string) ([]string, error) {
	var paths []string
	err := r.records(ctx, command{args: []string{"ls-files", flag, "-z", "--cached"}}, func(record string) {
		if letter, path, _ := strings.Cut(record, " "); strings.Contains(letters, letter) {
			paths = append(paths, path)
		}
	})
	return paths, err
}

// refuseUnseen returns an error if a file has changed that the index marks as unchanged:
// no preview would show the lost changes. If paths is nil, it checks all files.
func (r *repository) refuseUnseen(ctx context.Context, paths []string) error {
	marked, err := r.marked(ctx, "-v", "hsmrck") // small letters
	if paths != nil {
		marked = below(marked, paths)
	}
	if err != nil || len(marked) == 0 {
		return err
	}
	x, err := r.newIndex()
	if err != nil {
		return err
	}
	defer x.Close()
	if err := x.copy(); err != nil {
		return err
	}
	args := []string{"update-index", "-z", "--no-assume-unchanged", "--stdin"}
	if _, err := x.run(ctx, command{args: args, stdin: terminated(marked)}); err != nil {
		return err
	}
	slices.Sort(marked)
	var unseen []string
	err = r.records(ctx, x.with(command{args: []string{"diff-files", "--name-only", "-z"}}), func(path string) {
		if _, ok := slices.BinarySearch(marked, path); ok {
			unseen = append(unseen, path)
		}
	})
	if err != nil || len(unseen) == 0 {
		return err
	}
	return tool.Errorf(tool.Conflict, "The index marks changed files as unchanged: %s", r.namesOf(unseen)).
		WithHint("the user must remove the marks (git update-index --no-assume-unchanged)")
}
