package main

import (
	"context"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/plugins/fs/internal/glob"
	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type searchFilesArgs struct {
	Pattern   string   `json:"pattern" jsonschema:"glob" alias:"glob,query,name"`
	Path      string   `json:"path,omitempty" jsonschema:"directory" role:"path" alias:"dir,directory" default:"."`
	Exclude   []string `json:"exclude,omitempty" jsonschema:"globs to leave out"`
	Type      string   `json:"type,omitempty" jsonschema:"kind" enum:"any,file,directory,symlink" default:"any"`
	Size      string   `json:"size,omitempty" jsonschema:"such as >1MiB or <10KiB"`
	Modified  string   `json:"modified,omitempty" jsonschema:"since, such as 24h or 2026-01-31"`
	Gitignore bool     `json:"gitignore,omitempty" jsonschema:"skip what git ignores" default:"true"`
	Sort      string   `json:"sort,omitempty" jsonschema:"modified: newest first" enum:"name,modified" default:"name"`
	page.Args
}

// maxAfter is how many entries after a page in the order of names are looked at to count the
// results: 10 ms, where a page that is full early takes 1.
const maxAfter = 10_000

// searchFiles is the tool search_files.
func searchFiles(ctx context.Context, w *workspace, in searchFilesArgs) (tool.Result, error) {
	absolute, err := in.normalize(w)
	if err != nil {
		return tool.Result{}, err
	}
	wanted, err := in.filter(time.Now())
	if err != nil {
		return tool.Result{}, err
	}
	if absolute {
		wanted.pattern = glob.Glob(in.Pattern) // one without a slash is for that directory only
	}
	files, err := filetree.Open(w.Roots, in.Path, filetree.Options{Gitignore: in.Gitignore, Skip: wanted.skip})
	if err != nil {
		return tool.Result{}, err
	}
	defer files.Close()
	list := page.NewListing(in.Args, w.budget)
	l := &matchList{Listing: list, most: min(w.maxCounted, maxAfter)}
	if in.Sort == "modified" {
		l.most = w.maxCounted
		l.newest = &newest{most: min(list.Start, w.maxCounted) + min(list.Limit, w.maxCounted) + 1}
	}
	if err := l.read(ctx, files, wanted); err != nil {
		return tool.Result{}, err
	}
	return page.WithNotes(l.Result(l.total, l.more, "[nothing found]"), &l.notes, page.NotesRoom(w.budget)), nil
}

// matchList is the growing list of the entries that match.
type matchList struct {
	*page.Listing
	newest *newest // nil for the order of names
	most   int     // entries to sort, or to count after the page
	notes  page.Notes
	// total is how many entries match; more means that there may be others.
	total int
	more  bool
}

// read walks through the tree. In the order of names, it counts what follows the page.
func (l *matchList) read(ctx context.Context, files *filetree.Tree, wanted *fileFilter) error {
	after := 0
	for e, err := range files.Walk(ctx) {
		switch {
		case err != nil && e.Path() == "":
			return err
		case err != nil:
			l.notes.AddError(e, err)
			continue
		case l.Full:
			after++
		}
		if after > l.most {
			l.more = true
			return nil
		}
		if !wanted.match(e) {
			continue
		}
		switch {
		case l.newest == nil:
			if l.total++; l.total > l.Start && !l.Full {
				l.Add(matchLine(e))
			}
		case l.total == l.most:
			l.more = true
			l.notes.Add("only the first %d matches in the order of names were sorted; use a narrower pattern or path", l.most)
			return l.addNewest()
		default:
			if info, err := e.Info(); err == nil { // else it is gone
				l.total++
				l.newest.add(matchLine(e), info.Modified)
			}
		}
	}
	return l.addNewest()
}

// addNewest adds the sorted entries.
func (l *matchList) addNewest() error {
	if l.newest == nil {
		return nil
	}
	lines := l.newest.lines()
	for _, line := range lines[min(l.Start, len(lines)):] {
		if !l.Add(line) {
			break
		}
	}
	return nil
}

// matchLine returns the line of an entry.
func matchLine(e filetree.Entry) string {
	line := display.VisibleName(e.Path())
	if e.IsDir() {
		line += "/"
	}
	return line
}

// normalize makes the pattern relative to the directory to search. A pattern that ends in
// a slash is for directories, and an absolute one names the directory itself.
func (in *searchFilesArgs) normalize(w *workspace) (absolute bool, err error) {
	if pattern := strings.TrimRight(in.Pattern, "/"); pattern != in.Pattern && pattern != "" {
		if in.Type == "file" || in.Type == "symlink" {
			return false, tool.Errorf(tool.InvalidArgument, "pattern ends in a slash, which only directories do, but type is %s", in.Type).
				WithHint("leave the slash out, or use type=directory")
		}
		in.Pattern, in.Type = pattern, "directory"
	}
	if !path.IsAbs(in.Pattern) {
		return false, nil
	}
	base, pattern := doublestar.SplitPattern(path.Clean(in.Pattern))
	dir, err := w.Display(base)
	if err != nil {
		return false, err
	}
	start, err := w.Display(in.Path)
	if err != nil {
		return false, err
	}
	if start != "." && dir != start && !strings.HasPrefix(dir, start+"/") {
		return false, tool.Errorf(tool.InvalidArgument, "pattern is for files below %s, which is not below path, %s", display.VisibleName(dir), display.VisibleName(start)).
			WithHint("leave path out, or use a pattern relative to it")
	}
	in.Path, in.Pattern = dir, pattern
	return true, nil
}

// fileFilter holds the criteria of search_files.
type fileFilter struct {
	pattern  glob.Glob
	exclude  []glob.Glob
	kind     string
	min, max int64 // sizes; a max of -1 means any
	since    time.Time
}

func (in searchFilesArgs) filter(now time.Time) (*fileFilter, error) {
	f := &fileFilter{kind: in.Type, max: -1}
	var err error
	if f.pattern, err = glob.Parse(in.Pattern); err != nil {
		return nil, err
	}
	if f.exclude, err = glob.ParseAll(in.Exclude); err != nil {
		return nil, err
	}
	if in.Size != "" {
		if f.min, f.max, err = parseSize(in.Size); err != nil {
			return nil, err
		}
	}
	if in.Modified != "" {
		if f.since, err = parseSince(in.Modified, now); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// skip reports whether an entry is excluded, or belongs to version control.
func (f *fileFilter) skip(e filetree.Entry) bool {
	return glob.IsVersionControl(e) || glob.MatchAny(f.exclude, e)
}

func (f *fileFilter) match(e filetree.Entry) bool {
	switch f.kind {
	case "file":
		if !e.Type.IsRegular() {
			return false
		}
	case "directory":
		if !e.IsDir() {
			return false
		}
	case "symlink":
		if e.Type != fs.ModeSymlink {
			return false
		}
	}
	return f.pattern.Match(e.Rel()) && f.matchInfo(e)
}

// matchInfo examines the size and the time of an entry only if the filter has any.
func (f *fileFilter) matchInfo(e filetree.Entry) bool {
	if f.max < 0 && f.since.IsZero() {
		return true
	}
	info, err := e.Info()
	if err != nil {
		return false // it is gone
	}
	if f.max >= 0 && (!info.Mode.IsRegular() || info.Size < f.min || info.Size > f.max) {
		return false
	}
	return !info.Modified.Before(f.since)
}

// parseSize parses ">1MiB" or "<10KiB".
func parseSize(text string) (smallest, largest int64, err error) {
	bad := tool.Errorf(tool.InvalidArgument, "size is %.40q, expected > or < and a size", text).WithHint("such as >1MiB or <10KiB")
	if text == "" {
		return 0, 0, bad
	}
	number := strings.TrimSpace(text[1:])
	size, err := tool.ParseByteSize(number)
	switch {
	case number != "" && (text[0] == '>' || text[0] == '<') && strings.Trim(number, "0123456789") == "":
		return 0, 0, tool.Errorf(tool.InvalidArgument, "size is %.40q, expected a unit behind the number", text).
			WithHint("%sB is bytes; others are KiB, MiB and GiB", text)
	case err != nil:
		return 0, 0, bad
	case text[0] == '>' && size == math.MaxInt64:
		return 1, 0, nil // no file is larger
	case text[0] == '>':
		return int64(size) + 1, math.MaxInt64, nil
	case text[0] == '<' && size > 0:
		return 0, int64(size) - 1, nil
	default:
		return 0, 0, bad
	}
}

// parseSince parses a time, or how long ago it was.
func parseSince(text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, tool.Errorf(tool.InvalidArgument, "modified is %.40q, expected a time or how long ago it was", text).
		WithHint("such as 24h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z")
}
