package schema

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string; the reader stands on its first quote.
func (r *reader) str() (string, error) {
	r.pos++
	start := r.pos
	plain := true // one-byte characters only, nothing to decode or to check
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; {
		case c == '"':
			s := r.text[start:r.pos]
			if !plain && !utf8.Valid(s) {
				return "", r.errorAt(start+validPrefix(s), "text that is not UTF-8")
			}
			r.pos++
			return string(s), nil
		case c == '\\':
			return r.escapedString(start)
		case c < 0x20:
			return "", r.errorAt(r.pos, "a control character in a string, expected an escape such as \\n")
		case c >= utf8.RuneSelf:
			plain = false
		}
		r.pos++
	}
	return "", r.expected("the '\"' that ends the string")
}

// escapedString reads on at the first backslash of a string that began at
// start.
func (r *reader) escapedString(start int) (string, error) {
	s := make([]byte, 0, 2*(r.pos-start)+64)
	plain := start // what stands from here to the reader is taken as it is
	for r.pos < len(r.text) {
		c := r.text[r.pos]
		if c < 0x20 {
			return "", r.errorAt(r.pos, "a control character in a string, expected an escape such as \\n")
		}
		if c != '"' && c != '\\' {
			r.pos++
			continue
		}
		run := r.text[plain:r.pos]
		if !utf8.Valid(run) {
			return "", r.errorAt(plain+validPrefix(run), "text that is not UTF-8")
		}
		s = append(s, run...)
		if c == '"' {
			r.pos++
			return string(s), nil
		}
		char, err := r.escape()
		if err != nil {
			return "", err
		}
		s = utf8.AppendRune(s, char)
		plain = r.pos
	}
	return "", r.expected("the '\"' that ends the string")
}

// escape reads a backslash and what belongs to it.
func (r *reader) escape() (rune, error) {
	start := r.pos
	if r.pos++; r.pos == len(r.text) {
		return 0, r.expected("an escape")
	}
	c := r.text[r.pos]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		r.pos++
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	if c != 'u' {
		return 0, r.errorAt(start, `an unknown escape, expected \", \\, \/, \b, \f, \n, \r, \t or \u and four hex digits`)
	}
	r.pos++
	char, ok := r.hex4()
	if !ok {
		return 0, r.errorAt(start, `an unknown escape, expected \u and four hex digits`)
	}
	if !utf16.IsSurrogate(char) {
		return char, nil
	}
	if rest := r.text[r.pos:]; len(rest) >= 2 && rest[0] == '\\' && rest[1] == 'u' {
		r.pos += 2
		if low, ok := r.hex4(); ok {
			if pair := utf16.DecodeRune(char, low); pair != utf8.RuneError {
				return pair, nil
			}
		}
	}
	return 0, r.errorAt(start, "half of a surrogate pair, expected both halves")
}

func (r *reader) hex4() (rune, bool) {
	if len(r.text)-r.pos < 4 {
		return 0, false
	}
	var char rune
	for _, c := range r.text[r.pos : r.pos+4] {
		switch {
		case isDigit(c):
			char = char<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			char = char<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	r.pos += 4
	return char, true
}

// validPrefix returns the number of bytes of s before the first that is not
// UTF-8.
func validPrefix(s []byte) int {
	n := 0
	for n < len(s) {
		char, size := utf8.DecodeRune(s[n:])
		if char == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return n
}
