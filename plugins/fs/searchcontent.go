package main

import (
	"context"
	"io"
	"runtime"

	"github.com/toolhost/toolhost/plugins/fs/internal/filetree"
	"github.com/toolhost/toolhost/plugins/fs/internal/search"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxWorkers is how many files are searched at a time, each with a buffer.
const maxWorkers = 8

type searchContentArgs struct {
	Pattern    string   `json:"pattern" jsonschema:"regular expression (RE2) to find in the lines of files" min:"1" max:"4096" alias:"query,regex"`
	Path       string   `json:"path,omitempty" jsonschema:"the directory or file to search, relative to the workspace or absolute below it" role:"path" alias:"dir,directory" default:"."`
	Literal    bool     `json:"literal,omitempty" jsonschema:"take the pattern as plain text" default:"false"`
	Case       string   `json:"case,omitempty" jsonschema:"smart ignores case unless the pattern has a capital letter" enum:"smart,sensitive,insensitive" default:"smart"`
	Word       bool     `json:"word,omitempty" jsonschema:"find the pattern only where no letter, digit or _ is right before or after it" default:"false"`
	Globs      []string `json:"globs,omitempty" jsonschema:"search only files that match one of these globs, such as *.go; one that begins with ! leaves out files and directories"`
	Types      []string `json:"types,omitempty" jsonschema:"search only files of these languages" enum:"c,cpp,css,go,html,java,javascript,json,kotlin,lua,markdown,php,proto,python,ruby,rust,shell,sql,swift,toml,typescript,xml,yaml"`
	Before     int      `json:"before,omitempty" jsonschema:"how many lines to show before each match" min:"0" max:"50" default:"0"`
	After      int      `json:"after,omitempty" jsonschema:"how many lines to show after each match" min:"0" max:"50" default:"0"`
	Multiline  bool     `json:"multiline,omitempty" jsonschema:"let the pattern match across line ends, in files up to 16 MiB" default:"false"`
	Mode       string   `json:"mode,omitempty" jsonschema:"what to return: the matching lines, the names of files that have any, or how many each has" enum:"content,files,count" default:"content"`
	Gitignore  bool     `json:"gitignore,omitempty" jsonschema:"leave out files that .gitignore files name" default:"true"`
	MaxResults int      `json:"max_results,omitempty" jsonschema:"stop after this many matching lines, or files" min:"1" max:"10000" default:"200"`
}

// searchContent is the tool search_content.
func searchContent(ctx context.Context, w *workspace, in searchContentArgs) (tool.Result, error) {
	pattern, err := in.compile()
	if err != nil {
		return tool.Result{}, err
	}
	names, err := in.nameFilter()
	if err != nil {
		return tool.Result{}, err
	}
	report := newReport(in, w.budget)
	s := &contentSearch{
		args: in, pattern: pattern, names: names, report: report,
		found: found{content: in.Mode == "content", most: in.MaxResults, space: report.budget},
	}
	info, err := w.Stat(in.Path)
	switch {
	case err != nil:
	case info.IsDir():
		err = s.directory(ctx, w)
	default:
		err = s.oneFile(ctx, w, info.Size())
	}
	if err != nil {
		return tool.Result{}, err
	}
	s.found.into(report)
	if some, _ := in.lineEnds(); some {
		report.notes.add("the line end in pattern matches with multiline=true only")
	}
	return report.result(), nil
}

// contentSearch is one search under way.
type contentSearch struct {
	args    searchContentArgs
	pattern *search.Pattern
	names   *nameFilter
	report  *report
	found   found
}

// directory searches the files below the directory, on all processors.
func (s *contentSearch) directory(ctx context.Context, w *workspace) error {
	skip := func(e filetree.Entry) bool { return s.names.skip(e) || s.found.isBeyond(e) }
	files, err := filetree.Open(w.Roots, s.args.Path, filetree.Options{Gitignore: s.args.Gitignore, Skip: skip})
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

// visit searches a file that was found.
func (s *contentSearch) visit(searcher *search.Searcher, e filetree.Entry, err error) {
	if err != nil {
		s.found.unreadable.Add(1)
		s.found.gaps.add(failed, gap{rel: e.Rel(), note: told(e, err)})
		return
	}
	if !e.Type.IsRegular() || !s.names.match(e) || s.found.isBeyond(e) {
		return
	}
	f, err := e.Open()
	if err != nil {
		s.unopened(e, err)
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	path, rel := e.Path(), e.Rel()
	s.found.add(fileHits{path, rel, s.file(searcher, f, f.Size(), gap{rel: rel, name: path})})
}

// oneFile searches the file that was named.
func (s *contentSearch) oneFile(ctx context.Context, w *workspace, size int64) error {
	f, err := w.Open(s.args.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	hits := s.file(s.searcher(ctx), f, size, gap{name: s.args.Path})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.found.add(fileHits{s.args.Path, s.args.Path, hits})
	return nil
}

// unopened counts a file that cannot be opened. One that is gone has nothing to
// find.
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

// file searches one file. What is not searched of it is noted as the gap.
func (s *contentSearch) file(searcher *search.Searcher, f io.ReadSeeker, size int64, g gap) *hits {
	hits := s.report.hits(s.args)
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
	return hits
}

// searcher returns what searches files on one processor.
func (s *contentSearch) searcher(ctx context.Context) *search.Searcher {
	options := search.Options{Charset: searchCharset, Strict: !s.pattern.Same(foreignRunes()), Done: ctx.Done()}
	if s.args.Mode == "content" {
		options.Before, options.After, options.Numbers = s.args.Before, s.args.After, true
	}
	return s.pattern.Searcher(options)
}

// searchCharset tells a search what a file holds.
func searchCharset(head []byte, whole bool) (search.Charset, bool) {
	c, ok := detectCharset(head, whole)
	if c.decoder == nil {
		return search.Charset{Skip: c.bom}, ok
	}
	return search.Charset{Skip: c.bom, Decode: c.text}, ok
}
