package textfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/display"
)

// chunkSize is how many bytes of a file are read at a time.
const chunkSize = 64 << 10

// Window selects a part of a text.
type Window struct {
	// Offset is the first line, from 1.
	Offset int
	// Column is the first byte of the first line, from 1; 0 means 1. In the middle of a
	// character, the window begins at the next one.
	Column int
	// Limit is the maximum number of lines.
	Limit int
	// Budget is the maximum size in bytes. A line that exceeds it is left out, unless it
	// is the first: that one is cut.
	Budget int
	// Numbered puts its number before each line, as cat -n does.
	Numbered bool
}

// MaxNumber is the maximum size of the number of a line in bytes, with its tab.
const MaxNumber = 20

// CountOnly is a window that shows nothing, to count lines.
var CountOnly = Window{Offset: math.MaxInt, Limit: 1}

// Excerpt is the part of a text that a window shows.
type Excerpt struct {
	Text []byte
	// First and Last are the lines shown; Last is First-1 if there are none.
	First, Last int
	// Cut means that the only line shown is incomplete; it continues at column Next.
	Cut  bool
	Next int
	// Short means that the first line has no such column; as far as it was read, it has
	// Length bytes.
	Short  bool
	Length int
	// Lines is the number of lines if the text was read to its end, or else how many were
	// seen.
	Lines int
	// Ended means that the text was read to its end.
	Ended bool
	// Bounded means that the rest of the text cannot be read.
	Bounded bool
	// lf and crlf count the line ends of each kind.
	lf, crlf int
}

// scanner reads a text once, in constant memory: it keeps the lines of the window and counts the
// rest.
type scanner struct {
	Window
	Excerpt
	line    int  // the line of the next byte
	partial bool // that line has begun
	full    bool // the window is full
	start   int  // where the current line begins in text, and number is the size of its number there
	number  int
	begun   bool // text has a part of the current line
	lastCR  bool // the last byte was a carriage return
	// left is how many bytes of the first line precede its column, and tail are the last
	// ones read.
	left int
	tail []byte
}

// Scan reads text through the window. If wholly is false, it stops when the window is
// full. size is the approximate length of the text; it need not be right.
func Scan(ctx context.Context, text io.Reader, w Window, size int64, wholly bool) (Excerpt, error) {
	w.Column = max(w.Column, 1)
	s := scanner{Window: w, line: 1, left: w.Column - 1}
	s.First, s.Last = w.Offset, w.Offset-1
	s.Text = make([]byte, 0, min(int64(w.Budget), size))
	chunk := make([]byte, min(chunkSize, size+1)) // one more sees the end at once
	for {
		if ctx.Err() != nil {
			return Excerpt{}, context.Cause(ctx)
		}
		n, err := text.Read(chunk)
		s.take(chunk[:n])
		if errors.Is(err, io.EOF) {
			s.end()
			return s.Excerpt, nil
		}
		if err != nil {
			return Excerpt{}, err
		}
		if s.full && !wholly {
			s.Lines = s.line
			return s.Excerpt, nil
		}
	}
}

// take reads one chunk.
func (s *scanner) take(chunk []byte) {
	s.countEnds(chunk)
	for len(chunk) > 0 {
		if s.full || s.line < s.Offset {
			chunk = s.skip(chunk)
			continue
		}
		if s.line == s.Offset && s.Column > 1 && len(s.Text) == 0 {
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

// skip counts lines without keeping them: to the end once the window is full, or else up
// to its first line.
func (s *scanner) skip(chunk []byte) []byte {
	if s.full {
		s.line += bytes.Count(chunk, []byte{'\n'})
		s.partial = chunk[len(chunk)-1] != '\n'
		return nil
	}
	for s.line < s.Offset {
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

// skipColumn skips the bytes before the column in the first line.
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
	for len(chunk) > 0 && !utf8.RuneStart(chunk[0]) && len(display.TrimPartial(s.tail)) < len(s.tail) {
		s.tail = append(s.tail, chunk[0])
		s.Column++
		chunk = chunk[1:]
	}
	return chunk
}

// lacks records that the first line ends before the column.
func (s *scanner) lacks() {
	s.Short, s.full = true, true
	s.Length = s.Column - 1 - s.left
}

// keep adds a part of the current line to the window, if it fits.
func (s *scanner) keep(part []byte) {
	if !s.begun && s.Numbered && !s.full {
		s.Text = fmt.Appendf(s.Text, "%6d\t", s.line)
		s.number = len(s.Text) - s.start
	}
	s.begun = true
	room := max(s.Budget-len(s.Text), 0)
	switch {
	case s.full:
	case len(part) <= room:
		s.Text = append(s.Text, part...)
	case s.start > 0 || s.line > s.First:
		s.Text = s.Text[:s.start] // whole lines only
		s.full = true
	default:
		s.Text = display.TrimPartial(append(s.Text, part[:room]...))
		s.Last, s.Cut, s.full = s.line, true, true
		s.Next = s.Column + len(s.Text) - s.number
	}
}

// endLine ends the current line.
func (s *scanner) endLine() {
	if !s.full {
		s.Last, s.start = s.line, len(s.Text)
		s.full = s.Last-s.First+1 >= s.Limit
	}
	s.begun = false
	s.line++
}

// end ends the text. Its last line may have no line end.
func (s *scanner) end() {
	s.Ended = true
	s.Lines = s.line - 1
	if s.Column > 1 && s.line == s.Offset && s.partial && len(s.Text) == 0 && !s.full {
		s.lacks()
	}
	if s.partial {
		s.Lines = s.line
		if !s.full && s.line >= s.Offset {
			s.Last = s.line
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

// EOL names the line ends: "lf", "crlf", "mixed" or "none".
func (e *Excerpt) EOL() string {
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
