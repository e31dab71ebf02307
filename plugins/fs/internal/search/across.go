package search

import (
	"bytes"
	"io"
)

// across searches a whole file at once.
func (s *Searcher) across(f io.ReadSeeker, size int64) (Result, error) {
	if size > MaxWhole {
		return TooLarge, nil
	}
	if size >= bufferSize && !s.take() {
		return Searched, nil
	}
	text, err := s.readWhole(f, size)
	if err != nil {
		return Searched, err
	}
	s.whole = true
	if !s.known {
		c, ok := s.charset(text)
		if !ok {
			return Binary, nil
		}
		if text = text[c.Skip:]; c.Decode != nil {
			if text, err = io.ReadAll(io.LimitReader(c.Decode(bytes.NewReader(text)), MaxWhole+1)); err != nil {
				return Searched, err
			}
		}
	}
	if len(text) > MaxWhole {
		return TooLarge, nil
	}
	if isBinary(text) {
		return Binary, nil
	}
	s.spans(text)
	return Searched, nil
}

// readWhole reads a file, and little more than can be searched.
func (s *Searcher) readWhole(r io.Reader, size int64) ([]byte, error) {
	buffer := s.buffer
	if size >= int64(len(buffer)) {
		buffer = make([]byte, size+1) // kept for no other file
	}
	w := &window{r: r, size: size, text: buffer[:0]}
	for {
		if err := w.fill(buffer); err != nil {
			return nil, err
		}
		if w.end || len(w.text) > MaxWhole {
			return w.text, nil
		}
		if !s.take() {
			return nil, nil
		}
		buffer = w.grow(buffer)
	}
}

// spans visits the lines with matches.
func (s *Searcher) spans(text []byte) {
	s.view = view{}
	s.view.begin(text)
	if s.literals != nil {
		if s.literals.Reset(); s.literals.Next(text, 0) < 0 {
			return
		}
	}
	next := 0 // start of the first line that was not shown as a match
	s.finder.Spans(text, func(begin, end int) bool {
		first := begin
		if first == len(text) && first > 0 && text[first-1] != '\n' {
			first-- // the end of a line that nothing ends
		}
		// A match that ends with a line is not in the next.
		last := max(end-1, first)
		for at := max(first, next); at <= last && at < len(text) && !s.stopped; at = next {
			start := bytes.LastIndexByte(text[:at], '\n') + 1
			next = lineEnd(text, at) + 1
			s.showSpan(start, next-1, max(begin-start, 0))
		}
		return !s.stopped
	})
	s.showAfter(len(text))
}

// showSpan is show for a line in which a match begins at a place, or began before.
func (s *Searcher) showSpan(start, end, begin int) {
	visit := s.visit
	s.visit = func(l Line) bool {
		if l.Matches {
			l.Begin = begin
		}
		return visit(l)
	}
	s.show(start, end)
	s.visit = visit
}
