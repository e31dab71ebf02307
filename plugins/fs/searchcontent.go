package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxLine is how much of one line is searched.
	maxLine = 1 << 20
	// maxMultiline is the size up to which a file is searched across lines.
	maxMultiline = 16 << 20
	// maxContext is how many lines around a match can be asked for.
	maxContext = 50
	// maxResults is how many matches one call returns at most.
	maxResults = 10_000
)

type searchContentArgs struct {
	Pattern    string   `json:"pattern" jsonschema:"regular expression (RE2) to find in the lines of files" alias:"query,regex"`
	Path       string   `json:"path,omitempty" jsonschema:"the directory or file to search, relative to the workspace or absolute below it" role:"path" alias:"dir,directory" default:"."`
	Literal    bool     `json:"literal,omitempty" jsonschema:"take the pattern as plain text" default:"false"`
	Case       string   `json:"case,omitempty" jsonschema:"smart ignores case unless the pattern has a capital letter" enum:"smart,sensitive,insensitive" default:"smart"`
	Word       bool     `json:"word,omitempty" jsonschema:"match whole words only" default:"false"`
	Globs      []string `json:"globs,omitempty" jsonschema:"search only files that match one of these globs, such as *.go; one that begins with ! leaves out files and directories"`
	Types      []string `json:"types,omitempty" jsonschema:"search only files of these languages" enum:"c,cpp,css,go,html,java,javascript,json,kotlin,lua,markdown,php,proto,python,ruby,rust,shell,sql,swift,toml,typescript,xml,yaml"`
	Before     int      `json:"before,omitempty" jsonschema:"how many lines to show before each match" default:"0"`
	After      int      `json:"after,omitempty" jsonschema:"how many lines to show after each match" default:"0"`
	Multiline  bool     `json:"multiline,omitempty" jsonschema:"let the pattern match across line ends, in files up to 16 MiB" default:"false"`
	Mode       string   `json:"mode,omitempty" jsonschema:"what to return: the matching lines, the names of files that have any, or how many each has" enum:"content,files,count" default:"content"`
	MaxResults int      `json:"max_results,omitempty" jsonschema:"stop after this many matching lines, or files" default:"200"`
}

func (in searchContentArgs) check() error {
	switch {
	case in.Before < 0 || in.Before > maxContext || in.After < 0 || in.After > maxContext:
		return tool.Errorf(tool.InvalidArgument, "before is %d and after is %d, expected 0 to %d", in.Before, in.After, maxContext)
	case in.MaxResults < 1 || in.MaxResults > maxResults:
		return tool.Errorf(tool.InvalidArgument, "max_results is %d, expected 1 to %d", in.MaxResults, maxResults)
	default:
		return nil
	}
}

// searchContent is the tool search_content.
func searchContent(ctx context.Context, w *workspace, in searchContentArgs) (tool.Result, error) {
	if err := in.check(); err != nil {
		return tool.Result{}, err
	}
	lines, err := in.matcher()
	if err != nil {
		return tool.Result{}, err
	}
	names, err := in.nameFilter()
	if err != nil {
		return tool.Result{}, err
	}
	s := &contentSearch{args: in, lines: lines, report: newReport(in, w.budget)}

	info, err := w.Stat(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	if !info.IsDir() {
		f, err := w.Open(in.Path)
		if err != nil {
			return tool.Result{}, err
		}
		if err := s.file(ctx, in.Path, f); err != nil {
			return tool.Result{}, err
		}
		return s.report.result(), nil
	}
	for e, err := range w.Walk(ctx, in.Path, roots.WalkOptions{Skip: names.skip}) {
		switch {
		case err != nil && e.Path == "":
			return tool.Result{}, err
		case err != nil:
			s.report.unreadable++
			continue
		case !e.Info.Mode().IsRegular() || !names.match(e):
			continue
		}
		f, err := e.Open()
		if err != nil {
			s.report.unreadable++
			continue
		}
		if err := s.file(ctx, e.Path, f); err != nil {
			return tool.Result{}, err
		}
		if s.report.full {
			break
		}
	}
	return s.report.result(), nil
}

// contentSearch is one search under way.
type contentSearch struct {
	args   searchContentArgs
	lines  *matcher
	report *report
}

// file searches one file and closes it. What cannot be read is counted; only
// the end of the context is an error.
func (s *contentSearch) file(ctx context.Context, path string, f *os.File) error {
	defer f.Close()
	head := make([]byte, headSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		s.report.unreadable++
		return nil
	}
	head = head[:n]
	c, ok := detectCharset(head, n < headSize)
	if !ok {
		s.report.binary++
		return nil
	}
	s.report.files++
	text := c.text(io.MultiReader(bytes.NewReader(head[c.bom:]), f))
	found := &hits{before: s.args.Before, after: s.args.After, limit: s.report.room(), first: s.args.Mode == "files"}
	if s.args.Multiline {
		err = s.across(text, found)
	} else {
		err = s.byLine(ctx, text, found)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		s.report.unreadable++
	}
	s.report.add(path, found)
	return nil
}

// byLine searches each line on its own.
func (s *contentSearch) byLine(ctx context.Context, text io.Reader, found *hits) error {
	r := bufio.NewReaderSize(text, chunkSize)
	for n := 1; !found.done(); n++ {
		if n%1000 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, err := readLine(r)
		if len(line) > 0 || err == nil {
			line = bytes.TrimSuffix(line, []byte{'\r'})
			found.line(n, line, s.lines.find(line))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readLine returns the next line without its end, and of a very long one the
// first [maxLine] bytes. The line is valid until the next call.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line = bytes.Clone(line)
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		var more []byte
		more, err = r.ReadSlice('\n')
		line = append(line, more[:min(len(more), maxLine-min(len(line), maxLine))]...)
	}
	return bytes.TrimSuffix(line, []byte{'\n'}), err
}

// across searches the whole text at once.
func (s *contentSearch) across(text io.Reader, found *hits) error {
	all, err := io.ReadAll(io.LimitReader(text, maxMultiline+1))
	if err != nil {
		return err
	}
	if len(all) > maxMultiline {
		return errors.New("too large to search across lines")
	}
	matches := s.lines.re.FindAllIndex(all, maxResults)
	for n, start := 1, 0; start < len(all) && !found.done(); n++ {
		end := len(all)
		if i := bytes.IndexByte(all[start:], '\n'); i >= 0 {
			end = start + i
		}
		for len(matches) > 0 && matches[0][1] <= start && matches[0][0] < start {
			matches = matches[1:]
		}
		at := -1
		if len(matches) > 0 && matches[0][0] <= end {
			at = max(matches[0][0]-start, 0)
		}
		found.line(n, all[start:end], at)
		start = end + 1
	}
	return nil
}
