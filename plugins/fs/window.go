package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/toolhost/toolhost/plugins/fs/internal/dfa"
)

// chunkSize is how much of a file is read at once.
const chunkSize = 64 << 10

// window is the part of a text that is asked for.
type window struct {
	// offset is the first line, counted from 1.
	offset int
	// column is where the first line begins, in bytes counted from 1; 0 is 1. In
	// the middle of a character it begins with the next.
	column int
	// limit is how many lines there are at most.
	limit int
	// budget is how many bytes they have at most. A line that would exceed it
	// is left out, unless it is the first: that one is cut.
	budget int
}

// excerpt is what a window shows of a text.
type excerpt struct {
	text []byte
	// first and last are the lines shown; last is first-1 if there are none.
	first, last int
	// cut says that the last line, which is the only one, is not whole; it goes
	// on at the column next.
	cut  bool
	next int
	// short says that the first line has no such column; it has length bytes, as
	// far as it was read.
	short  bool
	length int
	// lines is how many lines the text has, if it was read to its end; else
	// how many were seen.
	lines int
	// ended says that the text was read to its end.
	ended bool
	// bounded says that no more of it can be read than was.
	bounded bool
	// lf and crlf count the line ends of either kind.
	lf, crlf int
}

// scanner reads a text once, keeping what the window shows and counting the
// rest, in constant memory.
type scanner struct {
	window
	excerpt
	line    int  // the line that the next byte belongs to
	partial bool // that line has begun
	full    bool // the window takes no more
	start   int  // where the line under way begins in text
	lastCR  bool // the byte before was a carriage return
	// left is how many bytes of the first line are before its column, and tail
	// the last of those that were read.
	left int
	tail []byte
}

// scan reads text through the window. If wholly is false it stops when the
// window is full.
//
// size is about how long the text is; it need not be right.
func scan(ctx context.Context, text io.Reader, w window, size int64, wholly bool) (excerpt, error) {
	w.column = max(w.column, 1)
	s := scanner{window: w, line: 1, left: w.column - 1}
	s.first, s.last = w.offset, w.offset-1
	s.text = make([]byte, 0, min(int64(w.budget), size))
	chunk := make([]byte, min(chunkSize, size+1)) // one more sees the end at once
	for {
		if ctx.Err() != nil {
			return excerpt{}, context.Cause(ctx)
		}
		n, err := text.Read(chunk)
		s.take(chunk[:n])
		if errors.Is(err, io.EOF) {
			s.end()
			return s.excerpt, nil
		}
		if err != nil {
			return excerpt{}, err
		}
		if s.full && !wholly {
			s.lines = s.line
			return s.excerpt, nil
		}
	}
}

// take reads one chunk.
func (s *scanner) take(chunk []byte) {
	s.countEnds(chunk)
	for len(chunk) > 0 {
		if s.full || s.line < s.offset {
			chunk = s.skip(chunk)
			continue
		}
		if s.line == s.offset && s.column > 1 && len(s.text) == 0 {
			if chunk = s.skipColumn(chunk); len(chunk) == 0 || s.full {
				continue
			}
		}
		n := bytes.IndexByte(chunk, '\n') + 1
		ended := n > 0
		if !ended {
			n = len(chunk)
		}
		s.keep(chunk[:n])
		s.partial = !ended
		if ended {
			s.endLine()
		}
		chunk = chunk[n:]
	}
}

// skip counts lines without keeping them: all of them once the window is full,
// else up to its first line.
func (s *scanner) skip(chunk []byte) []byte {
	if s.full {
		s.line += bytes.Count(chunk, []byte{'\n'})
		s.partial = chunk[len(chunk)-1] != '\n'
		return nil
	}
	for s.line < s.offset {
		i := bytes.IndexByte(chunk, '\n')
		if i < 0 {
			s.partial = len(chunk) > 0 || s.partial
			return nil
		}
		s.line++
		s.partial = false
		chunk = chunk[i+1:]
	}
	return chunk
}

// skipColumn skips what is before the column in the first line.
func (s *scanner) skipColumn(chunk []byte) []byte {
	n := bytes.IndexByte(chunk, '\n')
	if n < 0 {
		n = len(chunk)
	}
	skipped := min(n, s.left)
	s.left -= skipped
	s.partial = s.partial || skipped > 0
	s.tail = append(s.tail, chunk[max(skipped-utf8.UTFMax, 0):skipped]...)
	s.tail = s.tail[max(len(s.tail)-utf8.UTFMax, 0):]
	chunk = chunk[skipped:]
	if s.left > 0 {
		if len(chunk) > 0 {
			s.lacks()
		}
		return chunk
	}
	for len(chunk) > 0 && !utf8.RuneStart(chunk[0]) && len(dfa.TrimRune(s.tail)) < len(s.tail) {
		s.tail = append(s.tail, chunk[0])
		s.column++
		chunk = chunk[1:]
	}
	return chunk
}

// lacks notes that the first line ends before the column.
func (s *scanner) lacks() {
	s.short, s.full = true, true
	s.length = s.column - 1 - s.left
}

// keep adds a part of the line under way to the window, if it fits.
func (s *scanner) keep(part []byte) {
	room := s.budget - len(s.text)
	switch {
	case s.full:
	case len(part) <= room:
		s.text = append(s.text, part...)
	case s.start > 0 || s.line > s.first:
		s.text = s.text[:s.start] // whole lines only
		s.full = true
	default:
		s.text = dfa.TrimRune(append(s.text, part[:room]...))
		s.last, s.cut, s.full = s.line, true, true
		s.next = s.column + len(s.text)
	}
}

// endLine ends the line under way.
func (s *scanner) endLine() {
	if !s.full {
		s.last, s.start = s.line, len(s.text)
		s.full = s.last-s.first+1 >= s.limit
	}
	s.line++
}

// end ends the text, whose last line may lack its line end.
func (s *scanner) end() {
	s.ended = true
	s.lines = s.line - 1
	if s.column > 1 && s.line == s.offset && s.partial && len(s.text) == 0 && !s.full {
		s.lacks()
	}
	if s.partial {
		s.lines = s.line
		if !s.full && s.line >= s.offset {
			s.last = s.line
		}
	}
}

func (s *scanner) countEnds(chunk []byte) {
	if len(chunk) == 0 {
		return
	}
	crlf := bytes.Count(chunk, []byte("\r\n"))
	if s.lastCR && chunk[0] == '\n' {
		crlf++
	}
	s.lastCR = chunk[len(chunk)-1] == '\r'
	s.crlf += crlf
	s.lf += bytes.Count(chunk, []byte{'\n'}) - crlf
}

// eol names the line ends: "lf", "crlf", "mixed", or "none".
func (e *excerpt) eol() string {
	switch {
	case e.lf > 0 && e.crlf > 0:
		return "mixed"
	case e.crlf > 0:
		return "crlf"
	case e.lf > 0:
		return "lf"
	default:
		return "none"
	}
}
