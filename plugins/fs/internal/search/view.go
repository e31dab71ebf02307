package search

import (
	"bytes"
	"slices"
)

// maxHeld is how much of a line is kept in case a match follows in the next part of the
// file.
const maxHeld = 4 << 10

// view tracks which lines of a file were shown and counted.
type view struct {
	text []byte // the part of the file that is searched
	// line is the number of the line that begins at counted.
	line, counted int
	// shown is where the first line begins that was not considered yet, and follow is how
	// many lines from there on are shown after a match.
	shown, follow int
	// held are the last lines before the text that were not shown.
	held []Line
}

// begin starts with the next part.
func (v *view) begin(text []byte) {
	v.text, v.counted, v.shown = text, 0, 0
	v.line = max(v.line, 1)
}

// number returns the number of the line that begins at a place, which follows those asked
// for before.
func (s *Searcher) number(at int) int {
	if !s.opts.Numbers {
		return 0
	}
	v := &s.view
	v.line += bytes.Count(v.text[v.counted:at], []byte{'\n'})
	v.counted = at
	return v.line
}

// lineAt returns the line between two places.
func (s *Searcher) lineAt(start, end int) Line {
	return Line{Number: s.number(start), Text: bytes.TrimSuffix(s.view.text[start:end], []byte{'\r'}), Begin: -1}
}

// give visits a line, unless the search was stopped.
func (s *Searcher) give(l Line) {
	if !s.stopped && !s.visit(l) {
		s.stopped = true
	}
}

// show visits a matching line with those around it.
func (s *Searcher) show(start, end int) {
	v := &s.view
	s.showAfter(start)
	s.showBefore(start)
	l := s.lineAt(start, end)
	l.Matches = true
	s.give(l)
	v.shown, v.follow = min(end+1, len(v.text)), s.opts.After
}

// showAfter visits the lines that follow the previous match, up to a place.
func (s *Searcher) showAfter(limit int) {
	v := &s.view
	for v.follow > 0 && v.shown < limit {
		end := lineEnd(v.text, v.shown)
		s.give(s.lineAt(v.shown, end))
		v.shown = min(end+1, len(v.text))
		v.follow--
	}
}

// showBefore visits the lines before a match.
func (s *Searcher) showBefore(start int) {
	v := &s.view
	if s.opts.Before == 0 {
		return
	}
	begins := v.linesBefore(start, s.opts.Before)
	if len(begins) < s.opts.Before && v.shown == 0 {
		for _, l := range v.held[max(len(v.held)-s.opts.Before+len(begins), 0):] {
			s.give(l)
		}
	}
	v.held = v.held[:0]
	for _, begin := range slices.Backward(begins) {
		s.give(s.lineAt(begin, lineEnd(v.text, begin)))
	}
}

// linesBefore returns the starts of at most most lines before a place that were not
// shown, the last one first.
func (v *view) linesBefore(at, most int) []int {
	var begins []int
	for at > v.shown && len(begins) < most {
		at = bytes.LastIndexByte(v.text[:at-1], '\n') + 1
		begins = append(begins, at)
	}
	return begins
}

// finish is called at the end of each part.
func (s *Searcher) finish(last bool) {
	v := &s.view
	s.showAfter(len(v.text))
	if last || s.stopped {
		return
	}
	if s.opts.Before > 0 {
		begins := v.linesBefore(len(v.text), s.opts.Before)
		if v.shown > 0 {
			v.held = v.held[:0]
		}
		v.held = append([]Line(nil), v.held[max(len(v.held)-s.opts.Before+len(begins), 0):]...)
		for _, begin := range slices.Backward(begins) {
			l := s.lineAt(begin, lineEnd(v.text, begin))
			l.Text = bytes.Clone(l.Text[:min(len(l.Text), maxHeld)])
			v.held = append(v.held, l)
		}
	}
	s.number(len(v.text))
	if len(v.text) > 0 && v.text[len(v.text)-1] != '\n' {
		v.line++ // the rest of it is left out
	}
}
