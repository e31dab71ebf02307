package dfa

import (
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// maxTable is about how many bytes the states of one machine take.
	maxTable = 2 << 20
	// stateOverhead is the size of a state without its row and its ways.
	stateOverhead = 160
	// worth is how many characters a state must serve: if the table is full before, the
	// machine continues without it for a while.
	worth = 10
	// without is for how many characters the machine continues without a table.
	without = 256 << 10
	// poll is how many characters are read between two checks whether to stop.
	poll = 4 << 10
)

// machine is the automaton of a program, whose states are created as they are reached. It
// is for one goroutine.
type machine struct {
	*stepper
	done <-chan struct{}

	// table has a row for each state: for each class, the row of the next state by its
	// offset. Rows that need attention, because a match has ended or none can follow, are
	// stored inverted. The first row is unused, so that unknown is not a row.
	table  []int32
	states []ways // by the number of their row
	rows   map[string]int32
	size   int // bytes of all states
	// starts are the rows of the states at a beginning, by the context before it; 0 if
	// there is none yet.
	starts [found << 1]int32

	// served is how many characters the table has served before last, the place up to
	// which they were counted.
	served, last int
	// open means that the text continues after its end: an assertion about its end or
	// what follows does not match.
	open bool
	// slow is for how many characters to continue without a table.
	slow int

	// gain measures how much it helped lately to examine several characters at once, and walk
	// counts for how many more characters not to do so.
	gain, walk int

	key       []byte
	one, next []int32
}

const unknown int32 = -1

func newMachine(p *program, done <-chan struct{}) *machine {
	m := &machine{stepper: newStepper(p), done: done}
	m.forget()
	return m
}

// forget empties the table.
func (m *machine) forget() {
	m.table = append(m.table[:0], make([]int32, m.columns())...)
	m.states = append(m.states[:0], ways{})
	m.rows = map[string]int32{}
	m.size = 0
	clear(m.starts[:])
}

// startRow returns the row of the state at a beginning.
func (m *machine) startRow(c context) int32 {
	if m.starts[c] == 0 {
		m.starts[c] = m.plain(m.row(m.begin(c)))
	}
	return m.starts[c]
}

// row returns the row of a state, inverted if it needs attention. It creates the state if
// it is missing, and copies the ways.
func (m *machine) row(w ways) int32 {
	m.key = w.key(m.key)
	if row, ok := m.rows[string(m.key)]; ok {
		return row
	}
	row := int32(len(m.table))
	for range m.columns() {
		m.table = append(m.table, unknown)
	}
	m.states = append(m.states, ways{w.context, append([]int32(nil), w.at...)})
	m.size += 4*m.columns() + 8*len(w.at) + stateOverhead
	if w.context&ended != 0 || m.dead(w) {
		row = ^row
	}
	m.rows[string(m.key)] = row
	return row
}

// dead reports whether no match can end later.
func (m *machine) dead(w ways) bool {
	return len(w.at) == 0 && (m.kind == longest || w.context&found != 0)
}

func (m *machine) state(row int32) ways { return m.states[int(row)/m.columns()] }

// after returns the row that follows another. at is the place of the machine in the text.
func (m *machine) after(row int32, class uint16, at int) int32 {
	w := m.step(m.state(row), class, m.next)
	m.next = w.at
	if m.size <= maxTable {
		next := m.row(w)
		m.table[int(row)+int(class)] = next
		return next
	}
	m.count(at)
	if m.served < worth*len(m.states) {
		m.slow = without
	}
	m.served = 0
	m.forget()
	return m.row(w)
}

// count records that the machine has reached a place.
func (m *machine) count(at int) {
	m.served += max(at-m.last, m.last-at)
	m.last = at
}

// forward reads from a place to the end of the text, or to where no later match can end. It
// returns the end of the preferred match, or, by line, of any match; -1 if there is none.
func (m *machine) forward(text []byte, from int) int {
	row := m.startRow(m.before(text, from))
	m.last = from
	end := -1
	for i := from; i < len(text); {
		if m.slow > 0 {
			w, stop, at, last := m.crawl(m.state(row), text, i)
			if last >= 0 {
				end = last
			}
			if stop {
				return end
			}
			i, m.last = at, at
			row = m.plain(m.row(w))
			continue
		}
		if i, row = m.glide(text, i, row); i == len(text) {
			break
		}
		class, size := m.decode(text[i:])
		next := m.table[int(row)+int(class)]
		if next == unknown {
			next = m.after(row, class, i)
		}
		if next < 0 {
			next = ^next
			w := m.state(next)
			if w.context&ended != 0 {
				end = i
			}
			if m.kind == byLine || m.dead(w) {
				m.count(i)
				return end
			}
		}
		row = next
		i += size
	}
	m.count(len(text))
	if m.kind == byLine && len(text) > 0 && text[len(text)-1] == '\n' {
		return -1 // the last line has ended
	}
	if m.open {
		if m.endsHere(m.state(row)) {
			return len(text)
		}
		return end
	}
	next := m.table[int(row)+int(m.end)]
	if next == unknown {
		next = m.after(row, m.end, len(text))
	}
	if m.state(m.plain(next)).context&ended != 0 {
		return len(text)
	}
	return end
}

// glide reads while the rows need no attention. It returns the place it reached and the
// row there. A search spends most of its time here.
func (m *machine) glide(text []byte, i int, row int32) (int, int32) {
	table, of, columns := m.table, &m.of, m.columns()
	for i < len(text) {
		if m.walk > 0 {
			end := min(i+m.walk, len(text))
			begin := i
			for i < end {
				next := table[int(row)+int(of[text[i]])]
				if next < 0 {
					m.walk -= i - begin
					return i, row
				}
				row = next
				i++
			}
			m.walk -= i - begin
			continue
		}
		next := table[int(row)+int(of[text[i]])]
		if next < 0 {
			break
		}
		i++
		if next != row {
			row = next
			continue
		}
		// Often most characters change nothing. The check of the next four does not depend on an
		// earlier result, so a processor does it at once. But a wrong guess costs as much as
		// several right ones save.
		same := table[row:][:columns]
		begin := i
		for i+4 <= len(text) {
			t := text[i : i+4 : i+4]
			if same[of[t[0]]] != row || same[of[t[1]]] != row || same[of[t[2]]] != row || same[of[t[3]]] != row {
				break
			}
			i += 4
		}
		if m.gain = min(m.gain+i-begin-5, 512); m.gain < -256 {
			m.walk, m.gain = 16<<10, 0
		}
	}
	return i, row
}

// plain returns a row, inverted or not, as an offset.
func (m *machine) plain(row int32) int32 { return max(row, ^row) }

// decode returns the class and the size of the first rune.
func (m *machine) decode(text []byte) (class uint16, size int) {
	if class = m.of[text[0]]; class != m.wide {
		return class, 1
	}
	r, size := utf8.DecodeRune(text)
	return m.class(r), size
}

// before returns the context before a place.
func (m *machine) before(text []byte, at int) context {
	if at == 0 {
		return afterText
	}
	r, _ := utf8.DecodeLastRune(text[:at])
	return m.contextAfter(r)
}

// contextAfter returns the context after a rune, in the direction of reading.
func (p *program) contextAfter(r rune) (c context) {
	if r == '\n' {
		c |= afterLine
	}
	if syntax.IsWordChar(r) {
		c |= afterWord
	}
	if p.words && isAnyWord(r) {
		c |= afterAnyWord
	}
	return c
}

// crawl is forward without a table, for a while. It returns the place it reached, the
// ways there, and the end of the last match or -1; stop means that nothing more can be
// found.
func (m *machine) crawl(w ways, text []byte, from int) (_ ways, stop bool, at, end int) {
	end = -1
	here := append(m.one[:0], w.at...)
	w.at = here
	i := from
	for n := 0; i < len(text) && m.slow > 0; n++ {
		if n%poll == 0 && m.stopped() {
			return w, true, i, -1
		}
		class, size := m.decode(text[i:])
		next := m.step(w, class, m.next)
		m.one, m.next = next.at, w.at
		w = next
		if w.context&ended != 0 {
			end = i
			if m.kind == byLine {
				return w, true, i, end
			}
		}
		if m.dead(w) {
			return w, true, i, end
		}
		i += size
		m.slow--
	}
	return w, false, i, end
}

// stopped reports whether the search must end.
func (m *machine) stopped() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}
