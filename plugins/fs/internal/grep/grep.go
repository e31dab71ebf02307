// Package grep searches the content of the files below a directory, on all processors. The
// result does not depend on how the work was divided: it contains the first matches in the order
// of the paths, and notes about files that were not searched.
package grep

import (
	"context"
	"io"
	"runtime"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/plugins/fs/internal/glob"
	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/plugins/fs/internal/search"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxWorkers is how many files are searched at a time, each with its own buffer.
const maxWorkers = 8

// Query is what to search for, where, and what to return.
type Query struct {
	Pattern string
	// Path is the directory or file to search.
	Path string
	// Literal means that the pattern is plain text, not a regular expression.
	Literal bool
	// Case is "smart", "sensitive" or "insensitive". Smart ignores case unless the
	// pattern has a capital letter.
	Case string
	// Word means that a match begins and ends at the border of a word.
	Word bool
	// Multiline means that a match may continue in the next line.
	Multiline bool
	// Globs and Types select files by name and language; see [glob.NewFilter].
	Globs, Types []string
	// Gitignore leaves out files that .gitignore files list.
	Gitignore bool
	// Mode is "content", "files_with_matches" or "count".
	Mode string
	// Before and after are how many lines around a match are returned.
	Before, After int
	// MaxResults is how many matching lines, or files, are returned.
	MaxResults int
	// Cursor is where the page before this one ended.
	Cursor sdk.Cursor
}

// countedBeyond is how many results are counted beyond those that a page can show.
const countedBeyond = 1000

// countTo returns how many results are counted. A page has no room for more than 100,000.
func (q *Query) countTo() int { return min(q.MaxResults, 100_000) + countedBeyond }

// Run searches and returns a result of at most budget bytes.
func Run(ctx context.Context, r *roots.Roots, q Query, budget int) (tool.Result, error) {
	pattern, err := q.compile()
	if err != nil {
		return tool.Result{}, err
	}
	names, err := glob.NewFilter(q.Globs, q.Types)
	if err != nil {
		return tool.Result{}, err
	}
	report := newReport(q, budget)
	s := &contentSearch{
		query: q, pattern: pattern, names: names, report: report,
		found: found{content: q.Mode == "content", most: q.MaxResults, space: report.budget, countTo: q.countTo()},
	}
	info, err := r.Stat(q.Path)
	switch {
	case err != nil:
	case info.IsDir():
		if s.start, err = s.resume(ctx, r); err == nil {
			err = s.directory(ctx, r)
		}
	default:
		err = s.oneFile(ctx, r, info.Size())
	}
	if err != nil {
		return tool.Result{}, err
	}
	s.found.into(report)
	if some, _ := q.lineEnds(); some {
		report.notes.Add("the line end in pattern matches with multiline=true only")
	}
	return report.result(), nil
}

// contentSearch is a search that is running.
type contentSearch struct {
	query   Query
	pattern *search.Pattern
	names   *glob.Filter
	report  *report
	found   found
	start   start
}

// directory searches the files below the directory on all processors.
func (s *contentSearch) directory(ctx context.Context, r *roots.Roots) error {
	skip := func(e filetree.Entry) bool {
		return s.names.Skip(e) || s.start.isAfter(e) || s.found.isUncounted(e)
	}
	files, err := filetree.Open(r, s.query.Path, filetree.Options{Gitignore: s.query.Gitignore, Skip: skip})
	if err != nil {
		return err
	}
	defer files.Close()
	visits := make([]filetree.Visit, min(runtime.GOMAXPROCS(0), maxWorkers))
	for i := range visits {
		searcher := s.searcher(ctx)
		visits[i] = func(e filetree.Entry, err error) { s.visit(searcher, e, err) }
	}
	return files.Each(ctx, visits)
}

// visit searches a file of the tree.
func (s *contentSearch) visit(searcher *search.Searcher, e filetree.Entry, err error) {
	if err != nil {
		s.found.unreadable.Add(1)
		s.found.gaps.add(failed, gap{rel: e.Rel(), note: page.Describe(e, err)})
		return
	}
	if !e.Type.IsRegular() || !s.names.Match(e) || s.found.isUncounted(e) {
		return
	}
	f, err := e.Open()
	if err != nil {
		s.unopened(e, err)
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	path, rel := e.Path(), e.Rel()
	beyond := s.found.isBeyond(e)
	hits := s.report.hits(s.query, beyond, s.start.line(rel))
	s.file(searcher, f, f.Size(), gap{rel: rel, name: path}, hits)
	if s.found.count(hits); !beyond {
		s.found.add(fileHits{path, rel, hits})
	}
}

// oneFile searches the file that the query names.
func (s *contentSearch) oneFile(ctx context.Context, r *roots.Roots, size int64) error {
	f, err := r.Open(s.query.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	from, _ := s.query.Cursor.Position()
	if s.query.Cursor != "" && s.query.Cursor != place(s.query.Path, int(from)) {
		return s.query.Cursor.Refuse()
	}
	hits := s.report.hits(s.query, false, int(from))
	s.file(s.searcher(ctx), f, size, gap{name: s.query.Path}, hits)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.found.count(hits)
	s.found.add(fileHits{s.query.Path, s.query.Path, hits})
	return nil
}

// unopened counts a file that cannot be opened. A file that was removed does not count.
func (s *contentSearch) unopened(e filetree.Entry, err error) {
	s.found.unreadable.Add(1)
	switch tool.AsError(err).Code { //nolint:exhaustive // the others have one cause: that it cannot be read
	case tool.NotFound:
	case tool.PermissionDenied:
		s.found.gaps.add(secret, gap{rel: e.Rel()})
	default:
		s.found.gaps.add(unread, gap{rel: e.Rel(), name: e.Path()})
	}
}

// file searches one file, and records in g what was not searched.
func (s *contentSearch) file(searcher *search.Searcher, f io.ReadSeeker, size int64, g gap, hits *hits) {
	result, err := searcher.Search(f, size, func(l search.Line) bool { return hits.take(l, searcher.Begin) })
	switch {
	case err != nil:
		s.found.unreadable.Add(1)
		s.found.gaps.add(unread, g)
	case result == search.TooLarge:
		s.found.unreadable.Add(1)
		s.found.gaps.add(tooLarge, g)
	case result == search.Binary:
		s.found.binary.Add(1)
	case result == search.Turned:
		s.found.binary.Add(1)
		s.found.gaps.add(turned, g)
	default:
		s.found.files.Add(1)
	}
	if g.lines = searcher.Cut(); g.lines > 0 {
		s.found.gaps.add(longLine, g)
	}
}

// searcher returns a searcher for one processor.
func (s *contentSearch) searcher(ctx context.Context) *search.Searcher {
	options := search.Options{Charset: searchCharset, Strict: !s.pattern.Same(textfile.ForeignRunes()), Done: ctx.Done()}
	if s.query.Mode == "content" {
		options.Before, options.After, options.Numbers = s.query.Before, s.query.After, true
	}
	return s.pattern.Searcher(options)
}

// searchCharset detects the encoding of a file for package search.
func searchCharset(head []byte, whole bool) (search.Charset, bool) {
	c, ok := textfile.Detect(head, whole)
	if c.Decoder == nil {
		return search.Charset{Skip: c.BOM}, ok
	}
	return search.Charset{Skip: c.BOM, Decode: c.Text}, ok
}
