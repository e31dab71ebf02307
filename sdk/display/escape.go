package display

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns text that is safe to show in a terminal, a log or an approval.
// Characters that move the cursor, change the direction of text or are invisible
// appear as escapes of Go such as \x1b and \u202e, and bytes that are not UTF-8 as
// \xff. Line breaks and tabs stay; use [VisibleName] for text that must stay on
// one line. Other text is unchanged.
func Visible(text string) string {
	start := nextHidden(text)
	if start < 0 {
		return text
	}
	var b strings.Builder
	for start >= 0 {
		b.WriteString(text[:start])
		char, size := utf8.DecodeRuneInString(text[start:])
		writeEscape(&b, char, text[start:start+size])
		text = text[start+size:]
		start = nextHidden(text)
	}
	b.WriteString(text)
	return b.String()
}

// VisibleName returns a name, such as the path of a file, for a line of text. A
// name with invisible characters, quotes or backslashes is quoted with the escapes
// of Go. Other names are unchanged.
func VisibleName(name string) string {
	special := func(c rune) bool {
		if c < utf8.RuneSelf {
			return c == '"' || c == '\\' || c < ' ' || c == 0x7f
		}
		return !unicode.IsPrint(c) || hidden(c)
	}
	if utf8.ValidString(name) && strings.IndexFunc(name, special) < 0 {
		return name
	}
	return Visible(strconv.QuoteToGraphic(name))
}

// nextHidden returns the index of the first character or byte to escape, or -1.
func nextHidden(text string) int {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
				return i
			}
			i++
			continue
		}
		char, size := utf8.DecodeRuneInString(text[i:])
		if size == 1 || hidden(char) {
			return i
		}
		i += size
	}
	return -1
}

// hidden reports whether a character is invisible or changes the text around it:
// controls, direction marks, zero-width characters, tags and line separators.
func hidden(char rune) bool {
	return unicode.In(char, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}

func writeEscape(b *strings.Builder, char rune, text string) {
	switch {
	case char == utf8.RuneError:
		fmt.Fprintf(b, `\x%02x`, text[0])
	case char == '\r':
		b.WriteString(`\r`)
	case char < utf8.RuneSelf:
		fmt.Fprintf(b, `\x%02x`, char)
	case char <= 0xffff:
		fmt.Fprintf(b, `\u%04x`, char)
	default:
		fmt.Fprintf(b, `\U%08x`, char)
	}
}

// JSONSize returns the size of a text in JSON as encoding/json writes it, in bytes.
func JSONSize[T ~string](text T) int {
	size := len(text) + len(`""`)
	for i, c := range text {
		switch {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			size++
		case c < ' ', c == '<', c == '>', c == '&':
			size += 5
		case c == '\u2028', c == '\u2029': // line separators
			size += 3
		case c == utf8.RuneError && !strings.HasPrefix(string(text[i:]), "\uFFFD"): // a byte that is not UTF-8
			size += 5
		}
	}
	return size
}
