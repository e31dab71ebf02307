package textfile

import (
	"strings"
	"unicode/utf8"
)

// LineEnds returns the line end of a text that has only one kind, else "".
func LineEnds(text string) string {
	all, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	switch {
	case all > 0 && crlf == all:
		return "\r\n"
	case all > 0 && crlf == 0:
		return "\n"
	default:
		return ""
	}
}

// WithLineEnd gives text the line ends of the style, if there is one.
func WithLineEnd(text, style string) string {
	switch style {
	case "\r\n":
		return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	case "\n":
		return strings.ReplaceAll(text, "\r\n", "\n")
	default:
		return text
	}
}

// LineEnd is what a line ends with: a line feed, a carriage return and a line
// feed, or nothing.
func LineEnd(line string) string {
	switch {
	case strings.HasSuffix(line, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(line, "\n"):
		return "\n"
	default:
		return ""
	}
}

// CountLines counts the lines of a text. A last line without a line end counts.
func CountLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// TrimRune takes a character that is not whole off the end of text.
func TrimRune(text []byte) []byte {
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		if tail := text[len(text)-cut:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				break
			}
			return text[:len(text)-cut]
		}
	}
	return text
}
