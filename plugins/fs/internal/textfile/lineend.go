package textfile

import (
	"strings"
)

// LineEnds returns the line end of a text whose lines all end alike, "\n" or "\r\n", or
// else "".
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

// WithLineEnd returns text with the line ends of style; it returns text itself if style
// is "".
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

// LineEnd returns the end of one line: "\r\n", "\n" or "".
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
