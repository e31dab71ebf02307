package console

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// part is a part of a line; Changed marks what the other line has not.
type part struct {
	Text    string
	Changed bool
}

// words divides a removed and an added line of a diff into what both have at their beginning and
// their end, and what differs between, whole words each. Lines without a word in common are not
// marked: all of them differs.
func words(removed, added string) (before, after []part) {
	sign, rest := removed[:min(1, len(removed))], removed[min(1, len(removed)):]
	other := added[min(1, len(added)):]
	head := common(rest, other)
	tail := commonEnd(rest[head:], other[head:])
	if strings.TrimSpace(rest[:head]+rest[len(rest)-tail:]) == "" {
		return []part{{Text: removed}}, []part{{Text: added}}
	}
	split := func(sign, text string) []part {
		return []part{{Text: sign + text[:head]}, {text[head : len(text)-tail], true}, {Text: text[len(text)-tail:]}}
	}
	return split(sign, rest), split(added[:min(1, len(added))], other)
}

// common returns the bytes that two texts have at their beginning, up to the start of a word.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) {
		char, size := utf8.DecodeRuneInString(a[n:])
		if other, _ := utf8.DecodeRuneInString(b[n:]); other != char {
			break
		}
		n += size
	}
	if atWord(a, n) && atWord(b, n) {
		return n
	}
	return strings.LastIndexFunc(a[:n], notInWord) + 1 // only ASCII and spaces end words: one byte, or the next is found again
}

// commonEnd is common for the end.
func commonEnd(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) {
		char, size := utf8.DecodeLastRuneInString(a[:len(a)-n])
		if other, _ := utf8.DecodeLastRuneInString(b[:len(b)-n]); other != char {
			break
		}
		n += size
	}
	if atWord(a, len(a)-n) && atWord(b, len(b)-n) {
		return n
	}
	i := strings.IndexFunc(a[len(a)-n:], notInWord)
	if i < 0 {
		return 0
	}
	return n - i
}

// atWord reports whether no word goes on over an index.
func atWord(text string, i int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	after, _ := utf8.DecodeRuneInString(text[i:])
	return i == 0 || i == len(text) || notInWord(before) || notInWord(after)
}

// notInWord reports whether a character is outside of words.
func notInWord(char rune) bool {
	return char < utf8.RuneSelf && !unicode.IsLetter(char) && !unicode.IsDigit(char) && char != '_'
}
