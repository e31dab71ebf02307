package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxFound is how many entries one call looks at; what lies beyond is
// reported.
const maxFound = 100_000

type listDirectoryArgs struct {
	Path      string `json:"path,omitempty" jsonschema:"the directory to list, relative to the workspace or absolute below it" role:"path" alias:"dir,directory" default:"."`
	Depth     int    `json:"depth,omitempty" jsonschema:"how many levels to list; 1 is the directory itself only" default:"1"`
	Hidden    bool   `json:"hidden,omitempty" jsonschema:"list names that begin with a dot too" default:"false"`
	Gitignore bool   `json:"gitignore,omitempty" jsonschema:"leave out what .gitignore files name" default:"false"`
	Sort      string `json:"sort,omitempty" jsonschema:"the order: by name, the largest first, or the last modified first" enum:"name,size,modified" default:"name"`
	pageArgs
}

// listDirectory is the tool list_directory.
func listDirectory(ctx context.Context, w *workspace, in listDirectoryArgs) (tool.Result, error) {
	if in.Depth < 1 {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "depth is %d, expected at least 1", in.Depth)
	}
	page, err := in.page()
	if err != nil {
		return tool.Result{}, err
	}
	hidden := 0
	options := filetree.Options{Depth: in.Depth, Gitignore: in.Gitignore, Skip: func(e filetree.Entry) bool {
		skip := !in.Hidden && strings.HasPrefix(e.Name, ".")
		if skip {
			hidden++
		}
		return skip
	}}
	found, notes, err := w.find(ctx, in.Path, options)
	if err != nil {
		return tool.Result{}, err
	}
	sortEntries(found, in.Sort)
	list := newListing(page, w.budget)
	for _, e := range found[min(page.start, len(found)):] {
		if !list.add(e.line()) {
			break
		}
	}
	if hidden > 0 {
		notes = append(notes, fmt.Sprintf("[%d hidden entries are not shown; list them with hidden=true]", hidden))
	}
	return withNotes(list.result(len(found), "[nothing to list]"), notes), nil
}

// listedEntry is an entry of a list, and what is shown of it.
type listedEntry struct {
	rel    string
	info   roots.Info
	target string // of a symbolic link
}

// find walks through a directory and returns what is below it, and what a
// model should know of what is not returned.
func (w *workspace) find(ctx context.Context, name string, options filetree.Options) (found []listedEntry, notes []string, err error) {
	files, err := filetree.Open(w.Roots, name, options)
	if err != nil {
		return nil, nil, err
	}
	defer files.Close()
	for e, err := range files.Walk(ctx) {
		if err != nil {
			if e.Path() == "" {
				return nil, nil, err
			}
			notes = append(notes, "["+tool.AsError(err).Message+"]")
			continue
		}
		if len(found) == maxFound {
			return found, append(notes, fmt.Sprintf("[only the first %d entries were looked at]", maxFound)), nil
		}
		info, err := e.Info()
		if err != nil {
			continue // it is gone
		}
		one := listedEntry{rel: e.Rel(), info: info}
		if info.Mode.Type() == fs.ModeSymlink {
			one.target = w.shownTarget(e)
		}
		found = append(found, one)
	}
	return found, notes, nil
}

func sortEntries(entries []listedEntry, order string) {
	switch order {
	case "size":
		slices.SortStableFunc(entries, func(a, b listedEntry) int { return cmp.Compare(b.info.Size, a.info.Size) })
	case "modified":
		slices.SortStableFunc(entries, func(a, b listedEntry) int { return b.info.Modified.Compare(a.info.Modified) })
	}
}

// line is the entry in a list.
func (e listedEntry) line() string {
	name := tool.VisibleName(e.rel)
	switch mode := e.info.Mode; {
	case mode.IsRegular():
		return name + "  " + strconv.FormatInt(e.info.Size, 10)
	case mode.IsDir():
		return name + "/"
	case mode.Type() == fs.ModeSymlink:
		return name + " -> " + e.target
	default:
		return name + "  (" + roots.Kind(mode) + ")"
	}
}

// shownTarget is where a link leads, in the caller's terms.
func (w *workspace) shownTarget(e filetree.Entry) string {
	target, err := e.Target()
	if err != nil {
		return "?"
	}
	return w.targetName(e.Path(), target)
}

// targetName is where the link of the given name leads, in the caller's terms:
// nothing outside the workspace is named.
func (w *workspace) targetName(link, target string) string {
	full := target
	if !path.IsAbs(target) {
		full = path.Join(path.Dir(link), target)
	}
	if _, err := w.Display(full); err != nil {
		return "(outside the workspace)"
	}
	return tool.VisibleName(target)
}
