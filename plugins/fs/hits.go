package main

import "strings"

// hits are the lines of one file to show.
type hits struct {
	before, after int
	// limit is how many matching lines are kept.
	limit int
	// room is how many bytes of text are kept; 0 means that matches are only
	// counted.
	room int
	// first says that one match is enough.
	first   bool
	lines   []hitLine
	matches int
	// more says that there is a match, or a line, beyond the bounds.
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
	case at >= 0 && h.room == 0:
		h.matches++
	case at >= 0:
		h.matches++
		h.keep(append(h.held, hitLine{number, shorten(text, at), true})...)
		h.held, h.follow = h.held[:0], h.after
	case h.follow > 0:
		h.keep(hitLine{number, shorten(text, 0), false})
		h.follow--
	case h.before > 0:
		if len(h.held) == h.before {
			h.held = append(h.held[:0], h.held[1:]...)
		}
		h.held = append(h.held, hitLine{number, shorten(text, 0), false})
	}
}

// keep keeps lines to show, until they cannot fit the result any more.
func (h *hits) keep(lines ...hitLine) {
	for _, line := range lines {
		h.lines = append(h.lines, line)
		h.room -= len(line.text)
	}
	if h.room <= 0 {
		h.room, h.more = 0, true
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
