package main

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxCounted is how many entries are counted or sorted. In the order of names, a cursor
// still reaches the rest.
const maxCounted = 100_000

type listDirectoryArgs struct {
	Path      string `json:"path,omitempty" jsonschema:"directory" role:"path" alias:"dir,directory" default:"."`
	Depth     int    `json:"depth,omitempty" jsonschema:"levels to list" default:"1"`
	Hidden    bool   `json:"hidden,omitempty" jsonschema:"with dot files"`
	Gitignore bool   `json:"gitignore,omitempty" jsonschema:"skip what git ignores"`
	Sort      string `json:"sort,omitempty" jsonschema:"order" enum:"name,size,modified" default:"name"`
	page.Args
}

// listDirectory is the tool list_directory.
func listDirectory(ctx context.Context, w *workspace, in listDirectoryArgs) (tool.Result, error) {
	if in.Depth < 1 {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "depth is %d, expected at least 1", in.Depth)
	}
	hidden := 0
	options := filetree.Options{Depth: in.Depth, Gitignore: in.Gitignore, Skip: func(e filetree.Entry) bool {
		skip := !in.Hidden && strings.HasPrefix(e.Name, ".")
		if skip {
			hidden++
		}
		return skip
	}}
	files, err := filetree.Open(w.Roots, in.Path, options)
	if err != nil {
		return tool.Result{}, err
	}
	defer files.Close()
	l := &directoryList{workspace: w, Listing: page.NewListing(in.Args, w.budget), order: in.Sort}
	if err := l.read(ctx, files); err != nil {
		return tool.Result{}, err
	}
	l.show()
	switch {
	case hidden > 0 && l.more:
		l.notes.Add("more than %d hidden entries are not shown; list them with hidden=true", hidden)
	case hidden > 0:
		l.notes.Add("%d hidden entries are not shown; list them with hidden=true", hidden)
	}
	return page.WithNotes(l.Result(l.total, l.more, "[nothing to list]"), &l.notes, page.NotesRoom(w.budget)), nil
}

// directoryList is the growing list of a directory.
type directoryList struct {
	*workspace
	*page.Listing
	order string
	notes page.Notes
	// total is how many entries were seen; more means that there are others.
	total int
	more  bool
	// sorted are the entries to sort.
	sorted []listedEntry
}

// listedEntry is an entry of a list.
type listedEntry struct {
	rel    string
	info   roots.Info
	gone   bool   // only the kind is known: the entry was removed, or cannot be examined
	target string // of a symbolic link
}

// read walks through the directory. In the order of names, it examines the entries of the
// page and counts the others.
func (l *directoryList) read(ctx context.Context, files *filetree.Tree) error {
	byName := l.order == "name"
	most := l.maxCounted
	if byName {
		most = max(most, l.Start+l.Limit+1) // one more shows that there is a next page
	}
	for e, err := range files.Walk(ctx) {
		switch {
		case err != nil && e.Path() == "":
			return err
		case err != nil:
			l.notes.AddError(e, err)
			continue
		case l.total == most:
			l.more = true
			if !byName {
				l.notes.Add("only the first %d entries in the order of names were sorted; sort=name lists the others", most)
			}
			return nil
		}
		l.total++
		switch {
		case !byName:
			l.sorted = append(l.sorted, l.look(e))
		case l.total > l.Start && !l.Full:
			l.Add(l.look(e).line())
		}
	}
	return nil
}

// look examines an entry.
func (l *directoryList) look(e filetree.Entry) listedEntry {
	info, err := e.Info()
	one := listedEntry{rel: e.Rel(), info: info, gone: err != nil}
	if one.gone {
		one.info.Mode = e.Type
	}
	if one.info.Mode.Type() == fs.ModeSymlink {
		one.target = l.shownTarget(e)
	}
	return one
}

// show adds the sorted entries.
func (l *directoryList) show() {
	sortEntries(l.sorted, l.order)
	for _, e := range l.sorted[min(l.Start, len(l.sorted)):] {
		if !l.Add(e.line()) {
			break
		}
	}
}

func sortEntries(entries []listedEntry, order string) {
	switch order {
	case "size":
		slices.SortStableFunc(entries, func(a, b listedEntry) int { return cmp.Compare(b.info.Size, a.info.Size) })
	case "modified":
		slices.SortStableFunc(entries, func(a, b listedEntry) int { return b.info.Modified.Compare(a.info.Modified) })
	}
}

// line returns the line of the entry.
func (e listedEntry) line() string {
	name := display.VisibleName(e.rel)
	switch mode := e.info.Mode; {
	case mode.IsRegular() && e.gone:
		return name + "  ?"
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

// shownTarget returns the target of a link in the caller's terms.
func (w *workspace) shownTarget(e filetree.Entry) string {
	target, err := e.Target()
	if err != nil {
		return "?"
	}
	return w.targetName(e.Path(), target)
}

// targetName returns the target of the link with that name in the caller's terms. It
// names nothing outside the workspace.
func (w *workspace) targetName(link, target string) string {
	full := target
	if !path.IsAbs(target) {
		full = path.Join(path.Dir(link), target)
	}
	if _, err := w.Display(full); err != nil {
		return "(outside the workspace)"
	}
	return display.VisibleName(target)
}
