package dfa

import "unicode/utf8"

// backward returns where the longest match begins that ends at to, not before from; -1 if
// there is none.
func (m *machine) backward(text []byte, from, to int) int {
	c := afterText
	if to < len(text) {
		r, _ := utf8.DecodeRune(text[to:])
		c = m.contextAfter(r)
	}
	row := m.startRow(c)
	m.last = to
	begin := -1
	for i := to; ; {
		class, size := m.end, 0
		if i > 0 {
			class, size = m.decodeLast(text[:i])
		}
		next := m.table[int(row)+int(class)]
		if next == unknown {
			next = m.after(row, class, i)
		}
		if next < 0 {
			next = ^next
			w := m.state(next)
			if w.context&ended != 0 {
				begin = i
			}
			if m.dead(w) {
				break
			}
		}
		if i == from {
			break
		}
		row = next
		i -= size
	}
	m.count(from)
	return begin
}

// decodeLast returns the class and the size of the last rune.
func (m *machine) decodeLast(text []byte) (class uint16, size int) {
	if class = m.of[text[len(text)-1]]; class != m.wide {
		return class, 1
	}
	r, size := utf8.DecodeLastRune(text)
	return m.class(r), size
}
