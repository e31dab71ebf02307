package gitignore

import (
	"math/bits"
	"strings"
)

// glob is a pattern with wildcards.
type glob struct {
	number  int
	dirOnly bool

	// prefix and suffix are the beginning and the end of each match.
	prefix, suffix string
	// tokens match the text after the prefix, with the suffix.
	tokens []token
}

// token is one step of a glob.
type token struct {
	kind tokenKind
	char byte   // of kind char
	set  *class // of kind oneOf
}

type tokenKind uint8

const (
	char  tokenKind = iota // this byte
	oneOf                  // a byte of the set
	one                    // ?: any byte but a slash
	star                   // *: any number of bytes but slashes
	deep                   // **: any number of bytes
	// dirs is the beginning of "**/": what follows, which is deep and a slash,
	// may also be left out.
	dirs
)

// parseGlob parses a pattern without a leading slash. It reports false if the pattern
// matches nothing.
func parseGlob(pattern string) (glob, bool) {
	// Git first compares the literal beginning. When it checks whether "**" is a whole name, it
	// takes the rest for the beginning: "a**/b" matches "ab".
	plain := strings.IndexAny(pattern, special)
	g := glob{prefix: pattern[:plain]}
	rest := pattern[plain:]
	for i := 0; i < len(rest); {
		switch c := rest[i]; c {
		case '*':
			stars := len(rest[i:]) - len(strings.TrimLeft(rest[i:], "*"))
			alone := i == 0 || rest[i-1] == '/'
			i += stars
			g.addStar(stars > 1 && alone, rest[i:])
		case '?':
			g.tokens = append(g.tokens, token{kind: one})
			i++
		case '[':
			set, size := parseClass(rest[i:])
			if set == nil {
				return glob{}, false
			}
			g.tokens = append(g.tokens, token{kind: oneOf, set: set})
			i += size
		case '\\':
			if i++; i == len(rest) {
				return glob{}, false
			}
			c = rest[i]
			fallthrough
		default:
			g.tokens = append(g.tokens, token{kind: char, char: c})
			i++
		}
	}
	g.suffix = plainEnd(g.tokens)
	return g, true
}

// addStar adds a star, or two stars that are alone in their part of the path.
func (g *glob) addStar(double bool, rest string) {
	switch {
	case double && strings.HasPrefix(rest, "/"):
		g.tokens = append(g.tokens, token{kind: dirs}, token{kind: deep})
	case double && (rest == "" || strings.HasPrefix(rest, `\/`)):
		g.tokens = append(g.tokens, token{kind: deep})
	default:
		g.tokens = append(g.tokens, token{kind: star})
	}
}

// plainEnd returns the plain text at the end of the tokens.
func plainEnd(tokens []token) string {
	n := len(tokens)
	for n > 0 && tokens[n-1].kind == char {
		n--
	}
	end := make([]byte, 0, len(tokens)-n)
	for _, t := range tokens[n:] {
		end = append(end, t.char)
	}
	if n > 0 && tokens[n-1].kind == deep && n > 1 && tokens[n-2].kind == dirs {
		end = end[1:] // the slash may be left out
	}
	return string(end)
}

// match reports whether the glob matches the whole text. It follows all ways through the
// tokens at the same time, so no pattern takes longer than its length times that of the
// text.
func (g *glob) match(text string) bool {
	rest, ok := strings.CutPrefix(text, g.prefix)
	if !ok || !strings.HasSuffix(rest, g.suffix) {
		return false
	}
	var here, next [8]uint64 // enough for most
	now, then := positions(here[:]), positions(next[:])
	if n := len(g.tokens)/64 + 1; n > len(here) {
		now, then = make(positions, n), make(positions, n)
	} else {
		now, then = now[:n], then[:n]
	}
	g.reach(now, 0)
	for i := range len(rest) {
		clear(then)
		if !g.step(now, then, rest[i]) {
			return false
		}
		now, then = then, now
	}
	return now.has(len(g.tokens))
}

// step moves all positions over a byte. It reports whether one is left.
func (g *glob) step(now, then positions, c byte) bool {
	any := false
	for w, word := range now {
		for ; word != 0; word &= word - 1 {
			at := w*64 + bits.TrailingZeros64(word)
			if at == len(g.tokens) {
				break
			}
			next := at
			switch t := g.tokens[at]; {
			case t.kind == char && t.char == c, t.kind == one && c != '/', t.kind == oneOf && t.set.has(c):
				next = at + 1
			case t.kind == deep, t.kind == star && c != '/':
			default:
				continue
			}
			g.reach(then, next)
			any = true
		}
	}
	return any
}

// reach adds a position, and all positions that it reaches without a byte.
func (g *glob) reach(all positions, at int) {
	for !all.has(at) {
		all.add(at)
		if at == len(g.tokens) {
			return
		}
		switch g.tokens[at].kind {
		case dirs:
			g.reach(all, at+3)
		case star, deep:
		case char, oneOf, one:
			return
		}
		at++
	}
}

// positions is a set of indices of tokens.
type positions []uint64

func (p positions) has(i int) bool { return p[i/64]&(1<<(i%64)) != 0 }
func (p positions) add(i int)      { p[i/64] |= 1 << (i % 64) }
