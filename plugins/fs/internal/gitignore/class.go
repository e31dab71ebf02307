package gitignore

import "strings"

// class is a set of bytes, such as [a-z].
type class [4]uint64

func (s *class) has(c byte) bool { return s[c/64]&(1<<(c%64)) != 0 }
func (s *class) add(c byte)      { s[c/64] |= 1 << (c % 64) }

func (s *class) addRange(from, to byte) {
	for c := int(from); c <= int(to); c++ {
		s.add(byte(c))
	}
}

// parseClass parses a set at the beginning of text, which starts with "[". It returns the
// set and the length of its text, or nil if the text is not a set: then the whole pattern
// matches nothing.
func parseClass(text string) (set *class, size int) {
	set = &class{}
	i := 1
	negated := i < len(text) && (text[i] == '!' || text[i] == '^')
	if negated {
		i++
	}
	// A "]" that comes first means itself.
	for begin, previous := i, byte(0); ; {
		if i >= len(text) {
			return nil, 0
		}
		c := text[i]
		if c == ']' && i > begin {
			break
		}
		switch {
		case c == '\\':
			if i++; i == len(text) {
				return nil, 0
			}
			c = text[i]
			set.add(c)
		case c == '-' && previous != 0 && i+1 < len(text) && text[i+1] != ']':
			if i++; text[i] == '\\' {
				if i++; i == len(text) {
					return nil, 0
				}
			}
			set.addRange(previous, text[i])
			c = 0 // it begins no other range
		case c == '[' && strings.HasPrefix(text[i+1:], ":"):
			name, _, closed := strings.Cut(text[i+2:], "]")
			if !closed {
				return nil, 0
			}
			name, named := strings.CutSuffix(name, ":")
			if !named {
				set.add('[')
				break
			}
			if !set.addNamed(name) {
				return nil, 0
			}
			i += len("[:") + len(name) + len(":]") - 1
			c = 0
		default:
			set.add(c)
		}
		previous = c
		i++
	}
	if negated {
		for w := range set {
			set[w] = ^set[w]
		}
	}
	set['/'/64] &^= 1 << ('/' % 64)
	return set, i + 1
}

// addNamed adds the characters of [:name:] as git knows them: ASCII only, and fewer
// spaces than in C.
func (s *class) addNamed(name string) bool {
	ranges, ok := map[string]string{
		"alnum":  "09AZaz",
		"alpha":  "AZaz",
		"blank":  "  \t\t",
		"cntrl":  "\x00\x1f\x7f\x7f",
		"digit":  "09",
		"graph":  "!~",
		"lower":  "az",
		"print":  " ~",
		"punct":  "!/:@[`{~",
		"space":  "  \t\n\r\r",
		"upper":  "AZ",
		"xdigit": "09AFaf",
	}[name]
	for i := 0; i+1 < len(ranges); i += 2 {
		s.addRange(ranges[i], ranges[i+1])
	}
	return ok
}
