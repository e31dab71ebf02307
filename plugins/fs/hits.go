package main

import "strings"

// hits are the lines of one file to show.
type hits struct {
	before, after int
	// limit is how many matching lines are kept.
	limit int
	// first says that one is enough.
	first   bool
	lines   []hitLine
	matches int
	// more says that there is a match beyond the limit.
	more bool
	// held are the last lines, in case that a match follows.
	held []hitLine
	// follow is how many lines are shown because of the match before.
	follow int
}

// hitLine is a line to show.
type hitLine struct {
	number  int
	text    string
	matched bool
}

// done reports whether no further line is of interest.
func (h *hits) done() bool { return h.more || (h.first && h.matches > 0) }

// line takes the next line, in which the match begins at byte at; -1 means
// that there is none.
func (h *hits) line(number int, text []byte, at int) {
	switch {
	case at >= 0 && h.matches == h.limit:
		h.more = true
	case at >= 0:
		h.matches++
		h.lines = append(append(h.lines, h.held...), hitLine{number, shorten(text, at), true})
		h.held, h.follow = h.held[:0], h.after
	case h.follow > 0:
		h.lines = append(h.lines, hitLine{number, shorten(text, 0), false})
		h.follow--
	case h.before > 0:
		if len(h.held) == h.before {
			h.held = append(h.held[:0], h.held[1:]...)
		}
		h.held = append(h.held, hitLine{number, shorten(text, 0), false})
	}
}

// maxShown is how much of a line is shown.
const maxShown = 500

// shorten cuts a long line to what is around byte at.
func shorten(line []byte, at int) string {
	if len(line) <= maxShown {
		return strings.ToValidUTF8(string(line), "\uFFFD")
	}
	start := min(max(at-maxShown/4, 0), len(line)-maxShown)
	shown := strings.ToValidUTF8(string(line[start:start+maxShown]), "")
	if start > 0 {
		shown = "…" + shown
	}
	if start+maxShown < len(line) {
		shown += "…"
	}
	return shown
}
