package hosttools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	maxPattern = 1000
	maxContext = 50
	// maxSteps bounds the steps of a compiled pattern. A search takes as much time for each
	// byte as there are steps, and ends only between two pieces: with this bound, a piece
	// takes about a second at most.
	maxSteps = 2000
	// maxPiece is the longest line that is searched and counted in one piece. A longer
	// one is searched in pieces.
	maxPiece = 64 << 10
	// maxShownLine bounds the bytes that one line contributes to a result.
	maxShownLine = 500
)

// lineReader reads the lines of a result, in bounded memory.
type lineReader struct {
	ctx    context.Context //nolint:containedctx // the reader lives as long as one call
	r      *bufio.Reader
	offset int64 // offset of the next piece
	number int64 // number of the line of the next piece, from 1
}

func newLineReader(ctx context.Context, r io.ReaderAt, where span) *lineReader {
	return &lineReader{
		ctx: ctx, r: bufio.NewReaderSize(io.NewSectionReader(r, where.from, where.to-where.from), maxPiece),
		offset: where.from, number: 1,
	}
}

// piece is a line, or a part of a line that is longer than [maxPiece].
type piece struct {
	text   []byte // without the line break; valid until the next piece is read
	offset int64
	number int64
}

// next returns the next piece. The error is io.EOF at the end.
func (l *lineReader) next() (piece, error) {
	if err := l.ctx.Err(); err != nil {
		return piece{}, context.Cause(l.ctx)
	}
	text, err := l.r.ReadSlice('\n')
	if len(text) == 0 && err != nil {
		return piece{}, err
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return piece{}, err
	}
	p := piece{text: text, offset: l.offset, number: l.number}
	l.offset += int64(len(text))
	if line, ended := bytes.CutSuffix(text, []byte("\n")); ended {
		p.text = bytes.TrimSuffix(line, []byte("\r"))
		l.number++
	}
	return p, nil
}

// offsetOfLine returns the offset of a line. If there is no such line, at is -1 and lines is
// the number of lines.
func offsetOfLine(ctx context.Context, r io.ReaderAt, where span, line int64) (at, lines int64, err error) {
	l := newLineReader(ctx, r, where)
	for {
		p, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			return -1, lines, nil
		case err != nil:
			return 0, 0, err
		case p.number == line:
			return p.offset, 0, nil
		}
		lines = p.number
	}
}

// found is the result of a search.
type found struct {
	text    []byte
	matches int
	next    int64 // where the search stopped
}

// search returns the matching lines of a result and the lines around them, as grep does: "12:"
// before a matching line, "11-" before a line around it.
func search(ctx context.Context, r io.ReaderAt, where span, in readInput, limit int) (found, error) {
	pattern, err := compile(in.Pattern)
	if err != nil {
		return found{}, err
	}
	s := searcher{around: int(in.Context), limit: limit}
	l := newLineReader(ctx, r, where)
	for {
		p, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			return found{text: s.out, matches: s.matches, next: where.to}, nil
		case err != nil:
			return found{}, err
		case l.offset <= where.cursor && p.offset < where.cursor: // only count lines before the cursor
			continue
		}
		if !s.take(p, pattern.FindIndex(p.text)) {
			return found{text: s.out, matches: s.matches, next: p.offset}, nil
		}
	}
}

// compile reads a pattern. The error is for the model.
func compile(text string) (*regexp.Regexp, error) {
	pattern, err := regexp.Compile(text)
	if err != nil {
		return nil, tool.Errorf(tool.InvalidArgument, "pattern: %v", err).
			WithHint("expected a regular expression of RE2, without look-around and backreferences; write \\. \\( \\[ for these characters themselves")
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxSteps {
		return nil, tool.Errorf(tool.InvalidArgument, "pattern: it has %d steps, more than the %d that are allowed", len(program.Inst), maxSteps).
			WithHint("repeat less: write .* instead of .{0,1000}")
	}
	return pattern, nil
}

// searcher collects lines until its limit.
type searcher struct {
	around, limit int

	out     []byte
	lines   int
	matches int
	before  [][]byte // formatted lines before the next match
	after   int      // lines that remain to be shown after the last match
	last    int64    // the number of the last line in out
}

// take adds a piece; match is the range of its match, or nil. It returns false if the match
// does not fit.
func (s *searcher) take(p piece, match []int) bool {
	switch {
	case match != nil:
		lines := append(s.before, shownLine(p, ':', match))
		size := 3 // "--\n"
		for _, line := range lines {
			size += len(line)
		}
		if s.matches > 0 && (len(s.out)+size > s.limit || s.lines+len(lines)+1 > maxPartLines) {
			return false
		}
		if first := p.number - int64(len(s.before)); s.around > 0 && s.matches > 0 && first > s.last+1 {
			s.add([]byte("--\n"))
		}
		for _, line := range lines {
			s.add(line)
		}
		s.before, s.after, s.last = nil, s.around, p.number
		s.matches++
	case s.after > 0:
		if line := shownLine(p, '-', nil); len(s.out)+len(line) <= s.limit && s.lines < maxPartLines {
			s.add(line)
			s.last = p.number
		}
		s.after--
	case s.around > 0:
		if len(s.before) == s.around {
			s.before = s.before[1:]
		}
		s.before = append(s.before, shownLine(p, '-', nil))
	}
	return true
}

func (s *searcher) add(line []byte) {
	s.out = append(s.out, line...)
	s.out = excerpt.Head(s.out, s.limit)
	s.lines++
}

// shownLine formats a piece. From a long line it shows the part that matches.
func shownLine(p piece, sign byte, match []int) []byte {
	text, before, after := p.text, "", ""
	if len(text) > maxShownLine {
		from := 0
		if match != nil {
			from = min(max(match[0]-maxShownLine/4, 0), len(text)-maxShownLine)
		}
		for from > 0 && !utf8.RuneStart(text[from]) {
			from--
		}
		if from > 0 {
			before = "…"
		}
		if text = excerpt.Head(text[from:], maxShownLine); from+len(text) < len(p.text) {
			after = "…"
		}
	}
	return fmt.Appendf(nil, "%d%c%s%s%s\n", p.number, sign, before, bytes.ToValidUTF8(text, []byte("\uFFFD")), after)
}

// lastLine reports what the search found and how to continue it.
func (f found) lastLine(in readInput, where span) string {
	count := fmt.Sprintf("%d matching lines", f.matches)
	if f.matches == 1 {
		count = "1 matching line"
	}
	if f.next < where.to {
		return fmt.Sprintf("[%s so far; search on: %s]", count, in.next(f.next))
	}
	return fmt.Sprintf("[%s from byte %d to the end]", count, where.cursor)
}
