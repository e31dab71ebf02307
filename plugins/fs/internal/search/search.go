// Package search finds the lines of a file that match a regular expression. It
// takes a bounded amount of memory, whatever the size of the file and of its
// lines, and time that is linear in it, whatever the expression is.
package search

import (
	"bytes"
	"io"
	"regexp/syntax"

	"github.com/toolhost/toolhost/plugins/fs/internal/dfa"
	"github.com/toolhost/toolhost/plugins/fs/internal/literal"
)

const (
	// HeadSize is how much of a file is looked at to tell what it holds.
	HeadSize = 8 << 10
	// maxLine is how much of one line is searched.
	maxLine = 1 << 20
	// maxWhole is the size up to which a file is searched across lines.
	maxWhole = 16 << 20
	// bufferSize is how much is read at a time.
	bufferSize = 256 << 10
)

// Pattern is what is searched for. It may be used by several goroutines at once.
type Pattern struct {
	expression *dfa.Expression
	required   literal.Required
	across     bool
}

// Compile reads an expression of package regexp. If it is to match across lines,
// it is matched with the whole text, and else with each line, without its end.
func Compile(expr string, across bool) (*Pattern, error) {
	expression, err := dfa.Compile(expr)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	p := &Pattern{expression: expression, required: literal.Of(parsed.Simplify()), across: across}
	for _, l := range p.required.Literals {
		if bytes.ContainsAny([]byte(l.Text), "\r\n") {
			p.required.Exact = false // a line has none at its end
		}
	}
	return p, nil
}

// Same reports whether the pattern cannot tell the runes apart.
func (p *Pattern) Same(runes []rune) bool { return p.expression.Same(runes) }

// Line is a line that matches, or is near one that does. Its text, without its
// end, is valid until the next.
type Line struct {
	Number int // from 1; 0 if numbers are not asked for
	Text   []byte
	// Matches says that it matches.
	Matches bool
	// Begin is where a match of several lines begins in it; -1 where
	// [Searcher.Begin] tells.
	Begin int
}

// Options are the settings of a [Searcher]. The zero value is usable.
type Options struct {
	// Before and After are how many lines around each match are of interest.
	Before, After int
	// Numbers asks for the numbers of lines.
	Numbers bool
	// Charset, if not nil, tells by the head of a file how its bytes become
	// text. It is not ok if the file holds none.
	Charset func(head []byte, whole bool) (c Charset, ok bool)
	// Strict says that the pattern tells apart what would look the same without
	// the charset: then it is asked for before the search, and not only where
	// there is a line to show.
	Strict bool
	// Done, if not nil, ends a search soon after it is closed, as if nothing
	// more was found.
	Done <-chan struct{}
}

// Charset is how the bytes of a file become text.
type Charset struct {
	// Skip is how many bytes stand before the text.
	Skip int
	// Decode makes UTF-8 of what follows; nil if it is that.
	Decode func(io.Reader) io.Reader
}

// Result is what became of a file.
type Result int

// The results of [Searcher.Search].
const (
	Searched Result = iota // to its end, or until it was enough
	Binary                 // it does not hold text, or not any more from some line on
	TooLarge               // to be searched across lines
)

// Searcher searches files, one after the other. It is used by one goroutine.
type Searcher struct {
	pattern  *Pattern
	opts     Options
	finder   *dfa.Finder
	literals *literal.Finder // nil if there are none
	buffer   []byte

	// Of all files: how often a literal led to a line that does not match, and
	// how far they were searched by literals.
	vain, far int

	// Of this file.
	visit   func(Line) bool
	known   bool // the charset was asked for
	whole   bool // the window holds all of the file
	stopped bool // visit has had enough
	view    view
}

// Searcher returns a new searcher.
func (p *Pattern) Searcher(opts Options) *Searcher {
	s := &Searcher{pattern: p, opts: opts, finder: p.expression.Finder(opts.Done), buffer: make([]byte, bufferSize)}
	if len(p.required.Literals) > 0 {
		s.literals = literal.NewFinder(p.required.Literals)
	}
	return s
}

// Begin is where the first match begins in the text of a line that matches.
func (s *Searcher) Begin(text []byte) int {
	begin, _ := s.finder.Span(text, 0)
	return max(begin, 0)
}

// Search calls visit with each line of interest, in order, until it returns
// false. The size is that of the file as far as it is known, or 0. An error is
// one of reading.
func (s *Searcher) Search(f io.ReadSeeker, size int64, visit func(Line) bool) (Result, error) {
	s.visit, s.known, s.stopped = visit, s.opts.Charset == nil, false
	if s.pattern.across {
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

// charset asks for the charset by the head of a file.
func (s *Searcher) charset(head []byte) (Charset, bool) {
	s.known = true
	whole := s.whole && len(head) <= HeadSize
	return s.opts.Charset(head[:min(len(head), HeadSize)], whole)
}

// suspicious reports whether the charset is to be asked for before the search.
func (s *Searcher) suspicious(head []byte) bool {
	if len(head) == 0 {
		return false
	}
	return s.opts.Strict || head[0] == 0xEF || head[0] == 0xFE || head[0] == 0xFF || isBinary(head)
}

func isBinary(text []byte) bool { return bytes.IndexByte(text, 0) >= 0 }
