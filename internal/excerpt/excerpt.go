// Package excerpt shortens texts that others chose, so that an error, a log line
// or an event stays readable. All functions cut between characters.
package excerpt

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Of returns at most most bytes of text, and "…" if it cut the text.
func Of(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return Head(text, most) + "…"
}

// Head returns at most most bytes of text.
func Head[T ~string | ~[]byte](text T, most int) T {
	if len(text) <= most {
		return text
	}
	// In text that is not UTF-8 there may be no start of a character.
	for range utf8.UTFMax - 1 {
		if most == 0 || utf8.RuneStart(text[most]) {
			break
		}
		most--
	}
	return text[:most]
}

// Characters returns the first most characters of text.
func Characters(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}

// Printable returns at most most bytes of text without the characters that cannot
// be printed, and "…" if it cut the text.
func Printable(text string, most int) string {
	var b strings.Builder
	for _, r := range text {
		if b.Len()+utf8.RuneLen(r) > most {
			b.WriteString("…")
			break
		}
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}
