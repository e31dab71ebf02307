package schema

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string; the reader stands on its first quote.
func (r *reader) str() (string, error) {
	start := r.pos + 1
	escapes, err := r.passString()
	if err != nil {
		return "", err
	}
	s := r.text[start : r.pos-1]
	if !escapes {
		return string(s), nil
	}
	return unescape(s), nil
}

// passString passes a string, and reports whether it has escapes; the reader
// stands on its first quote.
func (r *reader) passString() (escapes bool, err error) {
	r.pos++
	run, ascii := r.pos, true // what stands from run to the reader has no escape
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; {
		case c < ' ':
			return false, r.errorAt(r.pos, "a control character in a string, expected an escape such as \\n")
		case c >= utf8.RuneSelf:
			ascii = false
		case c == '"', c == '\\':
			if s := r.text[run:r.pos]; !ascii && !utf8.Valid(s) {
				return false, r.errorAt(run+validPrefix(s), "text that is not UTF-8")
			}
			if c == '"' {
				r.pos++
				return escapes, nil
			}
			if _, err := r.escape(); err != nil {
				return false, err
			}
			escapes, run, ascii = true, r.pos, true
			continue
		}
		r.pos++
	}
	return false, r.expected("the '\"' that ends the string")
}

// unescape decodes what stands between the quotes of a string without mistakes.
func unescape(text []byte) string {
	r := reader{text: text}
	s := make([]byte, 0, len(text))
	for {
		next := bytes.IndexByte(text[r.pos:], '\\')
		if next < 0 {
			return string(append(s, text[r.pos:]...))
		}
		s = append(s, text[r.pos:r.pos+next]...)
		r.pos += next
		char, _ := r.escape()
		s = utf8.AppendRune(s, char)
	}
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
