package literal

import "encoding/binary"

const (
	// perWindow is the cost in nanoseconds of a look at a byte and those after it.
	perWindow = 0.5
	// minWindow is the minimum length of a literal.
	minWindow = 3
	// groups is the number of groups of literals.
	groups = 8
)

// windows finds literals by three adjacent bytes. It looks at every byte of a text once, no
// matter how many literals there are or how frequent their bytes are.
type windows struct {
	// pairs has, for each two bytes, the groups with a literal whose three bytes begin
	// with them and, in the upper half, end with them.
	pairs [1 << 16]uint16
	// needles are the literals of each group; at is the place of the three bytes.
	needles [groups][]needle
}

// newWindows returns nil if a literal is too short.
func newWindows(literals []Literal) *windows {
	w := &windows{}
	for i, l := range literals {
		if len(l.Text) < minWindow {
			return nil
		}
		at, best := 0, 2.0
		for i := range len(l.Text) - 2 {
			if chance := frequency(l.Text[i]) * frequency(l.Text[i+1]) * frequency(l.Text[i+2]); chance < best {
				at, best = i, chance
			}
		}
		group := i % groups
		w.needles[group] = append(w.needles[group], newNeedle(l, at))
		w.mark(l, at, 1<<group)
		w.mark(l, at+1, 1<<(groups+group))
	}
	return w
}

// mark marks the two bytes of a literal at a place, in all their spellings.
func (w *windows) mark(l Literal, at int, as uint16) {
	for _, first := range l.spellings(at) {
		for _, second := range l.spellings(at + 1) {
			w.pairs[uint16(first)|uint16(second)<<8] |= as
		}
	}
}

// spellings returns the spellings of a byte of the literal.
func (l Literal) spellings(i int) []byte {
	if l.Fold {
		return []byte{l.Text[i], upper(l.Text[i])}
	}
	return []byte{l.Text[i]}
}

// find returns where the first literal begins, using the place of its three bytes; len(in) if
// there is none.
func (w *windows) find(in []byte, from int) int {
	i := from
	for ; i+8 <= len(in); i += 4 {
		next := binary.LittleEndian.Uint64(in[i:])
		a, b, c := w.pairs[uint16(next)], w.pairs[uint16(next>>8)], w.pairs[uint16(next>>16)]
		d, e := w.pairs[uint16(next>>24)], w.pairs[uint16(next>>32)]
		if a&(b>>groups)|b&(c>>groups)|c&(d>>groups)|d&(e>>groups) == 0 {
			continue
		}
		for k, both := range [4]uint16{a & (b >> groups), b & (c >> groups), c & (d >> groups), d & (e >> groups)} {
			if start := w.stands(in, from, i+k, both); start >= 0 {
				return start
			}
		}
	}
	for ; i < len(in); i++ {
		if start := w.stands(in, from, i, 1<<groups-1); start >= 0 {
			return start
		}
	}
	return len(in)
}

// stands returns where a literal of one of the groups begins whose three bytes are at a place;
// -1 if no literal does.
func (w *windows) stands(in []byte, from, at int, of uint16) int {
	for group := 0; of != 0; group, of = group+1, of>>1 {
		if of&1 == 0 {
			continue
		}
		for i := range w.needles[group] {
			n := &w.needles[group][i]
			if start := at - n.at; start >= from && n.stands(in, start) {
				return start
			}
		}
	}
	return -1
}
