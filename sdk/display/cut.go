package display

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut returns at most most bytes of text, and "…" if it cut the text.
func Cut[T ~string](text T, most int) T {
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

// TrimPartial removes an incomplete character from the end of text.
func TrimPartial[T ~string | ~[]byte](text T) T {
	for cut := 1; cut < utf8.UTFMax && cut <= len(text); cut++ {
		if tail := text[len(text)-cut:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune([]byte(tail)) {
				break
			}
			return text[:len(text)-cut]
		}
	}
	return text
}
