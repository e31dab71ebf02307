package search

import (
	"bytes"
	"errors"
	"io"
)

// window is the part of a file that is in memory.
type window struct {
	r    io.Reader
	size int64 // of the file, if it is known
	text []byte
	read int64
	end  bool // the text reaches the end of the file
}

// fill reads until the buffer is full.
func (w *window) fill(buffer []byte) error {
	n := len(w.text)
	w.text = buffer[:n]
	for n < len(buffer) {
		got, err := w.r.Read(buffer[n:])
		n += got
		w.text = buffer[:n]
		w.read += int64(got)
		if errors.Is(err, io.EOF) || err == nil && n < len(buffer) && w.size > 0 && w.read >= w.size {
			// Another read at a known end would cost as much as reading a small file.
			w.end = true
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// grow returns a buffer of twice the size with the text.
func (w *window) grow(buffer []byte) []byte {
	larger := make([]byte, 2*len(buffer))
	w.text = larger[:copy(larger, w.text)]
	return larger
}

// lines searches line by line. If it finds bytes that are not UTF-8 before it has visited
// a line, it returns the encoding to use.
func (s *Searcher) lines(r io.Reader, size int64) (Result, Charset, error) {
	w := &window{r: r, size: size, text: s.buffer[:0]}
	s.view = view{}
	for first := true; !s.stopped && !s.ended(); first = false {
		if err := w.fill(s.buffer); err != nil {
			return Searched, Charset{}, err
		}
		s.whole = first && w.end
		if first && s.known && isBinary(w.text[:min(len(w.text), HeadSize)]) {
			return Binary, Charset{}, nil
		}
		if first && !s.known && s.suspicious(w.text[:min(len(w.text), HeadSize)]) {
			c, ok := s.charset(w.text)
			if !ok {
				return Binary, Charset{}, nil
			}
			if c.Decode != nil {
				return Searched, c, nil
			}
			w.text = w.text[:copy(w.text, w.text[c.Skip:])]
		}
		end := len(w.text)
		if !w.end {
			end = bytes.LastIndexByte(w.text, '\n') + 1
		}
		switch {
		case end > 0:
		case w.end:
			return Searched, Charset{}, nil
		case len(s.buffer) < MaxLine:
			if !s.take() {
				return Searched, Charset{}, nil
			}
			s.buffer = w.grow(s.buffer)
			continue
		default:
			end = len(w.text)
		}
		if w.end || w.text[end-1] == '\n' {
			result, c := s.chunk(w.text[:end], w.end, s.next)
			if result != Searched || c.Decode != nil || w.end {
				return result, c, nil
			}
			w.text = w.text[:copy(w.text, w.text[end:])]
			continue
		}
		result, c, err := s.longLine(w)
		if result != Searched || c.Decode != nil || err != nil {
			return result, c, err
		}
	}
	return Searched, Charset{}, nil
}

// longLine searches the beginning of a line that does not fit into memory, and continues with
// the next line.
func (s *Searcher) longLine(w *window) (Result, Charset, error) {
	matches := false
	result, c := s.chunk(w.text, false, func(text []byte, _ int) (start, end int) {
		if matches || !s.begins(text) {
			return -1, -1
		}
		matches = true
		return 0, len(text)
	})
	if result != Searched || c.Decode != nil {
		return result, c, nil
	}
	if !matches && !s.stopped && !s.ended() {
		s.cut++
	}
	return Searched, Charset{}, s.skipLine(w)
}

// begins reports whether a line that begins with the text matches.
func (s *Searcher) begins(line []byte) bool {
	if s.literals != nil {
		s.literals.Reset()
		if s.literals.Next(line, 0) < 0 {
			return false
		}
	}
	return s.finder.Begins(line)
}

// ended reports whether the search must end.
func (s *Searcher) ended() bool {
	select {
	case <-s.opts.Done:
		return true
	default:
		return false
	}
}

// skipLine reads up to the next line.
func (s *Searcher) skipLine(w *window) error {
	for !s.ended() {
		w.text = s.buffer[:0]
		if err := w.fill(s.buffer); err != nil {
			return err
		}
		if i := bytes.IndexByte(w.text, '\n'); i >= 0 {
			w.text = w.text[:copy(w.text, w.text[i+1:])]
			return nil
		}
		if w.end {
			w.text = w.text[:0]
			return nil
		}
	}
	return nil
}

// chunk searches some lines, or the beginning of one. next returns where the next
// matching line begins and ends, or -1.
func (s *Searcher) chunk(text []byte, last bool, next func(text []byte, at int) (start, end int)) (Result, Charset) {
	s.view.begin(text)
	zero := -1 // where the first zero byte is, once that is of interest
	if s.literals != nil {
		s.literals.Reset()
	}
	for at := 0; at < len(text) && !s.stopped; {
		start, end := next(text, at)
		if start < 0 {
			break
		}
		if !s.known {
			if c, ok := s.charset(text); !ok || c.Decode != nil {
				return binaryUnless(ok), c
			}
		}
		if zero < 0 {
			zero = firstZero(text)
		}
		if zero < end {
			return Turned, Charset{}
		}
		s.show(start, end)
		at = end + 1
	}
	if zero < 0 && !last {
		zero = firstZero(text)
	}
	if !last && zero < len(text) {
		return Turned, Charset{}
	}
	if !s.known && !last { // while the head is there
		if c, ok := s.charset(text); !ok || c.Decode != nil {
			return binaryUnless(ok), c
		}
	}
	s.finish(last)
	return Searched, Charset{}
}

// firstZero returns the place of the first zero byte, or the length of text.
func firstZero(text []byte) int {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return i
	}
	return len(text)
}

func binaryUnless(ok bool) Result {
	if ok {
		return Searched
	}
	return Binary
}

// next returns where the next matching line begins and ends, or -1. at is the beginning
// of a line.
func (s *Searcher) next(text []byte, at int) (start, end int) {
	for at < len(text) {
		byLiteral := s.literals != nil && !s.dense()
		var found int
		if byLiteral {
			found = s.literals.Next(text, at)
		} else if found = s.finder.Line(text[at:]); found >= 0 {
			found += at
		}
		if found < 0 {
			s.far += len(text) - at
			return -1, -1
		}
		start = at + bytes.LastIndexByte(text[at:found], '\n') + 1
		end = lineEnd(text, found)
		s.far += end - at
		line := text[start:end]
		switch {
		case byLiteral && s.pattern.required.Exact:
			return start, end
		case bytes.IndexByte(line, '\r') >= 0:
			if begin, _ := s.finder.Span(bytes.TrimSuffix(line, []byte{'\r'}), 0); begin >= 0 {
				return start, end
			}
		case !byLiteral || s.finder.Line(line) >= 0:
			return start, end
		}
		if byLiteral {
			s.vain++
		}
		at = end + 1
	}
	return -1, -1
}

// dense reports whether the literals lead to so many lines without a match that a search
// without them is faster.
func (s *Searcher) dense() bool {
	return s.vain > 100 && s.far/s.vain < 300 && !s.pattern.required.Exact
}

// lineEnd returns the end of the line at a place.
func lineEnd(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(text)
}
