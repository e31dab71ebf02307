package grep

import (
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/search"
)

// hits are the lines of one file to show.
type hits struct {
	before, after int
	// limit is how many matching lines are kept.
	limit int
	// room is how many bytes of text are kept; 0 means that matches are only counted.
	room int
	// first means that one match is enough.
	first bool
	// from is the last line of the file that a page before this one has shown.
	from    int
	lines   []hitLine
	matches int
	// more means that there is a match or a line beyond the bounds. Matches are counted
	// further.
	more bool
	// total is how many lines match, including those that are not kept. Counting stops above
	// countTo.
	total, countTo int
	// held are the last lines, which are shown if a match follows.
	held []hitLine
	// follow is how many more lines are shown after the last match.
	follow int
}

// hitLine is a line to show.
type hitLine struct {
	number  int
	text    string
	matched bool
	// match is the number of the match that the line belongs to, from 1.
	match int
}

// lineCost is the minimum number of bytes that a line takes in addition to its text. If it were
// larger, the lines of a file could end before the result is full, and the result would blame
// max_results.
const lineCost = len("1: \n")

// done reports whether no more lines are needed.
func (h *hits) done() bool { return (h.more && h.total > h.countTo) || (h.first && h.matches > 0) }

// take takes the next line that matches or is near a match, and reports whether more
// lines are needed. It calls begin only for a long line, to learn where the match begins.
func (h *hits) take(line search.Line, begin func(text []byte) int) bool {
	if line.Number <= h.from && h.from > 0 {
		h.skip(line)
		return true
	}
	if line.Matches {
		h.total++
	}
	switch {
	case h.more:
	case line.Matches && h.matches == h.limit:
		h.more = true
	case line.Matches && h.room == 0:
		h.matches++
	case line.Matches:
		h.matches++
		at := line.Begin
		if at < 0 && len(line.Text) > maxShown {
			at = begin(line.Text)
		}
		for i := range h.held {
			h.held[i].match = h.matches
		}
		h.keep(append(h.held, hitLine{line.Number, shorten(line.Text, max(at, 0)), true, h.matches})...)
		h.held, h.follow = h.held[:0], h.after
	case h.follow > 0:
		h.keep(hitLine{line.Number, shorten(line.Text, 0), false, h.matches})
		h.follow--
	default:
		h.held = append(h.held, hitLine{number: line.Number, text: shorten(line.Text, 0)})
	}
	return !h.done()
}

// skip takes a line that was shown before. The lines after a match may not have been.
func (h *hits) skip(line search.Line) {
	switch {
	case line.Matches:
		h.follow = h.after
	case h.follow > 0:
		h.follow--
	}
}

// keep keeps lines until the result has no room for them.
func (h *hits) keep(lines ...hitLine) {
	for _, line := range lines {
		h.lines = append(h.lines, line)
		h.room -= len(line.text) + lineCost
	}
	if h.room <= 0 {
		h.room, h.more = 0, true
	}
}

// trim removes the lines of all but the first matches.
func (h *hits) trim(matches int) {
	if h.matches <= matches {
		return
	}
	h.matches, h.more = matches, true
	for i, line := range h.lines {
		if line.match > matches {
			h.lines = h.lines[:i]
			return
		}
	}
}

// size returns how many bytes the lines take in a result, at least.
func (h *hits) size() int {
	sum := 0
	for _, line := range h.lines {
		sum += len(line.text) + lineCost
	}
	return sum
}

// maxShown is how many bytes of a line are shown.
const maxShown = 500

// shorten cuts a long line to the part around byte at.
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
