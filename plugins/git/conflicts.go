package main

import (
	"context"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The sides that have a file in conflict.
const (
	inBase = 1 << iota
	inOurs
	inTheirs
)

// sideWords are git's words for the sides that have a file in conflict.
var sideWords = [...]string{
	inBase: "both deleted", inOurs: "added by us", inTheirs: "added by them", inBase | inOurs: "deleted by them", inBase | inTheirs: "deleted by us",
	inOurs | inTheirs: "both added", inBase | inOurs | inTheirs: "both modified",
}

// hasConflicts reports whether files are in conflict.
func hasConflicts(changes *porcelain.Changes) bool {
	return slices.ContainsFunc(changes.Files, func(c porcelain.Change) bool { return c.Status == "U" })
}

// sidesOf returns the sides that have the files in conflict, if changes has any.
func (r *repository) sidesOf(ctx context.Context, changes *porcelain.Changes) (map[string]int, error) {
	sides := map[string]int{}
	if !hasConflicts(changes) {
		return sides, nil
	}
	err := r.records(ctx, command{args: []string{"ls-files", "--unmerged", "-z"}}, func(record string) {
		head, path, _ := strings.Cut(record, "\t")
		if sides[path] > 0 || len(sides) < maxHeld {
			sides[path] |= map[string]int{"1": inBase, "2": inOurs, "3": inTheirs}[head[strings.LastIndexByte(head, ' ')+1:]]
		}
	})
	return sides, err
}

// readConflicts is tryDiff for files against an index with conflicts. Git then cannot
// write the list and the patch in one run. The patch covers only the listed files.
func (r *repository) readConflicts(ctx context.Context, d *Diff, what *selection, cursor sdk.Cursor, room int) (again bool, err error) {
	before := len(what.leftOut)
	listed := *what
	listed.paths = nil
	changes := porcelain.NewChanges(maxLimit)
	changes.Each = func(c porcelain.Change) {
		what.see(c)
		if len(listed.paths) <= maxNames && !slices.Contains(listed.paths, c.Path) {
			listed.paths = append(listed.paths, c.Path)
		}
	}
	if _, err := r.run(ctx, what.command("diff", slices.Concat(listFlags(), []string{"--no-renames"}), changes, maxListed)); err != nil {
		return false, err
	}
	switch err := changes.Close(); {
	case err != nil:
		return false, unreadable(err)
	case len(what.leftOut) > before:
		return true, what.tooMany()
	case len(listed.paths) > maxNames:
		return false, tool.Errorf(tool.ResourceExhausted, "More than %d files differ during a conflict", maxNames).WithHint("name files or directories")
	}
	w, err := r.diffWindow(d, changes, &page{limit: maxLimit, room: room / 4}, cursor, room)
	if err != nil || len(listed.paths) == 0 {
		return false, err
	}
	sides, err := r.sidesOf(ctx, changes)
	if err != nil {
		return false, err
	}
	one := func(path string) bool { return sides[path] == inBase|inOurs || sides[path] == inBase|inTheirs }
	for _, part := range []struct {
		paths []string
		flags []string
	}{
		{slices.DeleteFunc(slices.Clone(listed.paths), one), nil},
		// One side changed the file, and the other one deleted it: git has no combined diff.
		{slices.DeleteFunc(slices.Clone(listed.paths), func(path string) bool { return !one(path) }), []string{"--base"}},
	} {
		if listed.paths = part.paths; len(listed.paths) == 0 {
			continue
		}
		flags := slices.Concat(r.patchFlags(), []string{"--no-renames"}, part.flags)
		if _, err := r.run(ctx, listed.command("diff", flags, r.headings(w, sides), tool.TiB)); err != nil {
			return false, err
		}
	}
	d.Patch, d.NextCursor, err = w.take()
	return false, err
}
