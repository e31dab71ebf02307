// Package search finds the lines of a file that match a regular expression. Its memory is
// bounded for any size of the file and of its lines, and its time is linear in the size for any
// expression.
package search

import (
	"bytes"
	"io"
	"regexp/syntax"

	"github.com/toolhost/toolhost/plugins/fs/internal/dfa"
	"github.com/toolhost/toolhost/plugins/fs/internal/literal"
)

const (
	// HeadSize is how many bytes of a file are read to detect its kind.
	HeadSize = 8 << 10
	// MaxLine is how much of one line is searched, since it must be in memory.
	MaxLine = 16 << 20
	// MaxWhole is the maximum size of a file that is searched across lines.
	MaxWhole = 16 << 20
	// bufferSize is how many bytes are read at a time.
	bufferSize = 256 << 10
	// maxLarge is how many searchers of one pattern can use more memory at a time, for a
	// long line or a whole file.
	maxLarge = 2
)

// Pattern is what to search for. It is safe for concurrent use.
type Pattern struct {
	expression *dfa.Expression
	required   literal.Required
	how        How
	large      chan struct{} // has one for each searcher that takes much memory
}

// How defines what a match is. The zero value means a match within a line.
type How struct {
	// Across matches the whole text; otherwise each line is matched without its end.
	Across bool
	// Words requires that no character of a word, of any script, precedes or follows a
	// match.
	Words bool
}

// Compile compiles an expression of package regexp.
func Compile(expr string, how How) (*Pattern, error) {
	expression, err := dfa.Compile(expr, how.Words)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	p := &Pattern{expression: expression, required: literal.Of(parsed.Simplify(), how.Words), how: how, large: make(chan struct{}, maxLarge)}
	for _, l := range p.required.Literals {
		if bytes.ContainsAny([]byte(l.Text), "\r\n") {
			p.required.Exact = false // the last line may have none
		}
	}
	return p, nil
}

// Same reports whether the pattern treats all the runes alike.
func (p *Pattern) Same(runes []rune) bool { return p.expression.Same(runes) }

// Line is a line that matches, or is near one. Its text, without its end, is valid until the
// next line.
type Line struct {
	Number int // from 1; 0 if numbers are not asked for
	Text   []byte
	// Matches means that the line matches.
	Matches bool
	// Begin is where a match of several lines begins in the line; -1 if [Searcher.Begin]
	// tells it.
	Begin int
}

// Options are the settings of a [Searcher]. The zero value is usable.
type Options struct {
	// Before and After are how many lines around each match are visited.
	Before, After int
	// Numbers asks for line numbers.
	Numbers bool
	// Charset, if not nil, detects the encoding of a file from its head. It reports false
	// if the file is not text.
	Charset func(head []byte, whole bool) (c Charset, ok bool)
	// Strict means that the pattern distinguishes characters that look alike in the wrong
	// encoding: then Charset is called before the search, and not only when there is a
	// line to show.
	Strict bool
	// Done, if not nil, ends a search soon after it is closed, as if nothing more was
	// found.
	Done <-chan struct{}
}

// Charset is the encoding of a file.
type Charset struct {
	// Skip is how many bytes precede the text.
	Skip int
	// Decode converts the text to UTF-8; nil means that it is UTF-8.
	Decode func(io.Reader) io.Reader
}

// Result says how the search of a file ended.
type Result int

// The results of [Searcher.Search].
const (
	Searched Result = iota // to its end, or until it was enough
	Binary                 // it does not hold text
	Turned                 // it holds text up to some line only, where the search ended
	TooLarge               // to be searched across lines
)

// Searcher searches files, one after the other. It is used by one goroutine.
type Searcher struct {
	pattern  *Pattern
	opts     Options
	finder   *dfa.Finder
	literals *literal.Finder // nil if there are none
	buffer   []byte

	// For all files: how often a literal led to a line that does not match, and how many
	// bytes were searched by literals.
	vain, far int

	// For this file.
	visit   func(Line) bool
	known   bool // the charset was asked for
	whole   bool // the window holds all of the file
	stopped bool // visit needs no more
	large   bool // it holds much memory
	view    view
	cut     int
}

// Cut returns how many lines of the last file did not match in their first [MaxLine]
// bytes, and were not searched further.
func (s *Searcher) Cut() int { return s.cut }

// Searcher returns a new searcher.
func (p *Pattern) Searcher(opts Options) *Searcher {
	s := &Searcher{pattern: p, opts: opts, finder: p.expression.Finder(opts.Done), buffer: make([]byte, bufferSize)}
	if len(p.required.Literals) > 0 {
		s.literals = literal.NewFinder(p.required.Literals)
	}
	return s
}

// Begin returns where the first match begins in the text of a matching line.
func (s *Searcher) Begin(text []byte) int {
	begin, _ := s.finder.Span(text, 0)
	return max(begin, 0)
}

// Search calls visit with each line of interest, in order, until it returns false. size
// is the size of the file if it is known, or 0. The error is one of reading.
func (s *Searcher) Search(f io.ReadSeeker, size int64, visit func(Line) bool) (Result, error) {
	s.visit, s.known, s.stopped, s.cut = visit, s.opts.Charset == nil, false, 0
	defer s.free()
	if s.pattern.how.Across {
		return s.across(f, size)
	}
	result, c, err := s.lines(f, size)
	if c.Decode == nil || err != nil {
		return result, err
	}
	if _, err := f.Seek(int64(c.Skip), io.SeekStart); err != nil {
		return Searched, err
	}
	result, _, err = s.lines(c.Decode(f), 0)
	return result, err
}

// take waits until the file may use much memory. It reports false if the search must end.
func (s *Searcher) take() (ok bool) {
	if s.large {
		return true
	}
	select {
	case s.pattern.large <- struct{}{}:
		s.large = true
	case <-s.opts.Done:
	}
	return s.large
}

// free ends a take.
func (s *Searcher) free() {
	if !s.large {
		return
	}
	if len(s.buffer) > bufferSize {
		s.buffer = make([]byte, bufferSize)
	}
	s.view = view{}
	s.large = false
	<-s.pattern.large
}

// charset detects the encoding from the head of a file.
func (s *Searcher) charset(head []byte) (Charset, bool) {
	s.known = true
	whole := s.whole && len(head) <= HeadSize
	return s.opts.Charset(head[:min(len(head), HeadSize)], whole)
}

// suspicious reports whether the encoding must be detected before the search.
func (s *Searcher) suspicious(head []byte) bool {
	if len(head) == 0 {
		return false
	}
	return s.opts.Strict || head[0] == 0xEF || head[0] == 0xFE || head[0] == 0xFF || isBinary(head)
}

func isBinary(text []byte) bool { return bytes.IndexByte(text, 0) >= 0 }
