package main

import (
	"context"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/tool"
)

// marked returns the files of the index that git ls-files marks with one of the letters.
func (r *repository) marked(ctx context.Context, flag, letters string) ([]string, error) {
	var paths []string
	records := porcelain.NewRecords(func(record []byte) error {
		if letter, path, _ := strings.Cut(string(record), " "); strings.Contains(letters, letter) {
			paths = append(paths, path)
		}
		return nil
	})
	if _, err := r.run(ctx, command{args: []string{"ls-files", flag, "-z", "--cached"}, output: records, maxOutput: maxListed}); err != nil {
		return nil, err
	}
	if err := records.Close(); err != nil {
		return nil, unreadable(err)
	}
	return paths, nil
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
	if _, err := x.run(ctx, command{args: args, stdin: []byte(strings.Join(marked, "\x00") + "\x00")}); err != nil {
		return err
	}
	slices.Sort(marked)
	var unseen []string
	records := porcelain.NewRecords(func(field []byte) error {
		if _, ok := slices.BinarySearch(marked, string(field)); ok {
			unseen = append(unseen, string(field))
		}
		return nil
	})
	if _, err := x.run(ctx, command{args: []string{"diff-files", "--name-only", "-z"}, output: records, maxOutput: maxListed}); err != nil {
		return err
	}
	if err := records.Close(); err != nil {
		return unreadable(err)
	}
	if len(unseen) == 0 {
		return nil
	}
	return tool.Errorf(tool.Conflict, "The index marks changed files as unchanged: %s", r.namesOf(unseen)).
		WithHint("the user must remove the marks (git update-index --no-assume-unchanged)")
}
