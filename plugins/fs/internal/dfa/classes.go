package dfa

import (
	"regexp/syntax"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// classes divides the runes into classes that an expression treats alike: the columns of
// the automaton's table.
type classes struct {
	// of is the class of each byte that is a complete rune; the others have the class wide.
	of [256]uint16
	// starts are the runes at which ranges of one class begin, and ids are their classes.
	// The first is 0.
	starts []rune
	ids    []uint16
	// samples is one rune of each class.
	samples []rune

	end  uint16 // the end of the text, after the classes of runes
	wide uint16 // a byte of a rune that is longer than a byte
}

// columns returns the number of columns of a table.
func (c *classes) columns() int { return int(c.wide) + 1 }

// class returns the class of a rune.
func (c *classes) class(r rune) uint16 {
	if r < utf8.RuneSelf {
		return c.of[r]
	}
	i := sort.Search(len(c.starts), func(i int) bool { return c.starts[i] > r })
	return c.ids[i-1]
}

// newClasses divides the runes by the instructions that match them. Line ends and ASCII word
// characters always have their own classes. If words is set, so do word characters of all scripts.
func newClasses(inst []syntax.Inst, words bool) *classes {
	edges := []rune{0, '\n', '\n' + 1, '\r', '\r' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1, utf8.RuneSelf}
	var sets []*syntax.Inst // the distinct ones
	seen := map[string]bool{}
	for i := range inst {
		in := &inst[i]
		if !matchesRune(in) {
			continue
		}
		if key := setKey(in); !seen[key] {
			seen[key] = true
			sets = append(sets, in)
			edges = append(edges, setEdges(in)...)
		}
	}
	if words {
		edges = append(edges, wordEdges()...)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)

	c := &classes{}
	known := map[string]uint16{}
	signature := make([]byte, len(sets)+1)
	for _, r := range edges {
		if r > unicode.MaxRune {
			break
		}
		signature[0] = 0
		switch {
		case r == '\n', r == '\r':
			signature[0] = byte(r)
		case syntax.IsWordChar(r):
			signature[0] = 1
		case words && isAnyWord(r):
			signature[0] = 2
		}
		for i, in := range sets {
			signature[i+1] = 0
			if in.MatchRune(r) {
				signature[i+1] = 1
			}
		}
		id, ok := known[string(signature)]
		if !ok {
			id = uint16(len(c.samples))
			known[string(signature)] = id
			c.samples = append(c.samples, r)
		}
		if n := len(c.ids); n > 0 && c.ids[n-1] == id {
			continue
		}
		c.starts = append(c.starts, r)
		c.ids = append(c.ids, id)
	}
	c.end = uint16(len(c.samples))
	c.wide = c.end + 1
	for b := range c.of {
		c.of[b] = c.wide
	}
	for i, from := range c.starts {
		to := rune(utf8.RuneSelf)
		if i+1 < len(c.starts) {
			to = min(to, c.starts[i+1])
		}
		for r := from; r < to; r++ {
			c.of[r] = c.ids[i]
		}
	}
	return c
}

func matchesRune(in *syntax.Inst) bool {
	return in.Op == syntax.InstRune || in.Op == syntax.InstRune1 || in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL
}

// setKey returns the same key for instructions that match the same runes.
func setKey(in *syntax.Inst) string {
	fold := syntax.Flags(in.Arg)&syntax.FoldCase != 0 && len(in.Rune) == 1
	key := []rune{rune(in.Op), 0}
	if fold {
		key[1] = 1
	}
	return string(append(key, in.Rune...))
}

// setEdges returns, for each range that the instruction matches, its first rune and the rune
// after its last.
func setEdges(in *syntax.Inst) []rune {
	switch {
	case in.Op == syntax.InstRuneAny || in.Op == syntax.InstRuneAnyNotNL:
		return nil
	case len(in.Rune) == 1:
		r := in.Rune[0]
		edges := []rune{r, r + 1}
		if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				edges = append(edges, f, f+1)
			}
		}
		return edges
	default:
		edges := slices.Clone(in.Rune)
		for i := 1; i < len(edges); i += 2 {
			edges[i]++
		}
		return edges
	}
}
