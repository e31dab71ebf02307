package literal

import "bytes"

// Finder finds literals in texts. It is for one goroutine at a time.
type Finder struct {
	probes []probe
	next   []place // of each probe
	// windows finds the literals where that is faster; nil otherwise.
	windows *windows
	found   int // where one begins by them; too early if that is not known
}

// place is what is known about a probe in a text.
type place struct {
	// small and large are the next places of its two spellings, or too early if they are
	// unknown.
	small, large int
	// found is the last place where one of its literals was found, or too early.
	found int
}

// NewFinder returns a finder of the literals, which are not empty.
func NewFinder(literals []Literal) *Finder {
	f := &Finder{probes: probes(literals)}
	if probesCost(f.probes) > perWindow {
		f.windows = newWindows(literals)
	}
	f.next = make([]place, len(f.probes))
	f.Reset()
	return f
}

// Reset prepares the finder for another text.
func (f *Finder) Reset() {
	f.found = -1
	for i := range f.next {
		f.next[i] = place{-1, -1, -1}
	}
}

// Next returns the first place at or after from where one of the literals begins; -1 if there is
// none. Between two calls of [Finder.Reset] the text must be the same, and from must not
// decrease.
func (f *Finder) Next(in []byte, from int) int {
	if f.windows != nil {
		if f.found < from {
			f.found = f.windows.find(in, from)
		}
		if f.found == len(in) {
			return -1
		}
		return f.found
	}
	best := len(in)
	for i := range f.probes {
		n := &f.next[i]
		if n.found < from {
			n.found = f.probes[i].find(in, from, n)
		}
		best = min(best, n.found)
	}
	if best == len(in) {
		return -1
	}
	return best
}

// find returns where the first literal of the probe begins, using the places of its byte;
// len(in) if there is none.
func (p *probe) find(in []byte, from int, n *place) int {
	places := 0
	for at := from; ; {
		n.small = nextByte(in, p.small, n.small, at)
		next := n.small
		if p.large != p.small {
			n.large = nextByte(in, p.large, n.large, at)
			next = min(next, n.large)
		}
		if next == len(in) {
			return next
		}
		for i := range p.needles {
			n := &p.needles[i]
			start := next - n.at
			if start < from || start+n.guard >= len(in) || !n.Fold && in[start+n.guard] != n.Text[n.guard] {
				continue
			}
			if n.stands(in, start) {
				return start
			}
		}
		at = next + 1
		// To go from byte to byte is slow where it is frequent.
		places++
		if l := p.needles[0].Literal; len(p.needles) == 1 && !l.Fold && places > 16+(at-from)/16 {
			start := max(next-p.needles[0].at+1, from)
			if i := bytes.Index(in[start:], []byte(l.Text)); i >= 0 {
				return start + i
			}
			return len(in)
		}
	}
}

// nextByte returns the first place of a byte at or after at; len(in) if there is none.
// known is an earlier result.
func nextByte(in []byte, c byte, known, at int) int {
	if known >= at {
		return known
	}
	if i := bytes.IndexByte(in[at:], c); i >= 0 {
		return at + i
	}
	return len(in)
}

// stands reports whether the literal is at a place.
func (l *Literal) stands(in []byte, at int) bool {
	if at+len(l.Text) > len(in) {
		return false
	}
	here := in[at : at+len(l.Text)]
	if !l.Fold {
		return string(here) == l.Text
	}
	for i, c := range here {
		if lower(c) != l.Text[i] {
			return false
		}
	}
	return true
}
