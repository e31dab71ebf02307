package dfa

import (
	"bytes"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/display"
)

// Finder finds an expression. It is for one goroutine at a time.
type Finder struct {
	e    *Expression
	done <-chan struct{}
	// The machines are created when they are needed.
	line, forward, reverse *machine
}

// Finder returns a new finder. Soon after done is closed, it finds nothing more; done may
// be nil.
func (e *Expression) Finder(done <-chan struct{}) *Finder {
	return &Finder{e: e, done: done}
}

// Line returns a place in the first line of the text that may match, or at its end; -1 if
// no line matches. Each line is matched by itself, without its end "\n" or "\r\n", so "^"
// and "$" are its beginning and end. A line that contains "\r" may not match after all:
// check it with [Finder.Span]. Other lines do match.
func (f *Finder) Line(text []byte) int {
	return f.byLine().forward(text, 0)
}

func (f *Finder) byLine() *machine {
	if f.line == nil {
		f.line = newMachine(f.e.line, f.done)
	}
	return f.line
}

func (f *Finder) toEnd() *machine {
	if f.forward == nil {
		f.forward = newMachine(f.e.forward, f.done)
		f.reverse = newMachine(f.e.reverse, f.done)
	}
	return f.forward
}

// Begins reports whether a line matches that begins with the text and continues in an
// unknown way: "$" and "\b" do not match at the end of the text. The text has no line
// end.
func (f *Finder) Begins(line []byte) bool {
	line = bytes.TrimSuffix(display.TrimPartial(line), []byte{'\r'}) // it may belong to the line end
	m := f.byLine()
	if bytes.IndexByte(line, '\r') >= 0 {
		m = f.toEnd() // for it this is a character like others
	}
	m.open = true
	defer func() { m.open = false }()
	return m.forward(line, 0) >= 0
}

// Span returns the beginning and end of the leftmost match that does not begin before
// from, as package regexp chooses it, or -1. The text before from matters only for "^"
// and "\b".
func (f *Finder) Span(text []byte, from int) (begin, end int) {
	if end = f.toEnd().forward(text, from); end < 0 {
		return -1, -1
	}
	if begin = f.reverse.backward(text, from, end); begin < 0 {
		return -1, -1 // it was stopped
	}
	return begin, end
}

// Spans calls each with the matches of [regexp.Regexp.FindAllIndex], until it returns
// false.
func (f *Finder) Spans(text []byte, each func(begin, end int) bool) {
	for at, previous := 0, -1; at <= len(text); {
		begin, end := f.Span(text, at)
		if end < 0 {
			return
		}
		// An empty match right after another match does not count.
		if (begin != previous || end != begin) && !each(begin, end) {
			return
		}
		previous = end
		if end > at {
			at = end
			continue
		}
		_, size := utf8.DecodeRune(text[at:])
		at += max(size, 1)
	}
}
