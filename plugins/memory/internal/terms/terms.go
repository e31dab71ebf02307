// Package terms splits a text into the terms it is found by: words without case,
// accents and endings, and pairs of characters in scripts without spaces between
// words. Any text is accepted. The same text always gives the same terms. Stored
// terms have a [Version].
package terms

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Version must change whenever a text may give other terms than before: terms
// stored by another version are made again.
const Version = 1

// maxWord bounds a word in characters. The rest of a longer word is ignored.
const maxWord = 40

// A Word is a word of a text.
type Word struct {
	// Folded is the word without case and accents.
	Folded string
	// Term is Folded without its ending.
	Term string
}

// Words returns the words of a text in order, without stop words ("the", "what").
func Words(text string) []Word {
	var found []Word
	for _, w := range Split(text) {
		if !stopWords[w] {
			found = append(found, Word{Folded: w, Term: stem(w)})
		}
	}
	return found
}

// Split returns all words of a text, folded. In a script without spaces between
// words, each character and each pair of characters is a word.
func Split(text string) []string {
	s := splitter{}
	for _, r := range norm.NFKC.String(strings.ToValidUTF8(text, " ")) {
		s.add(r)
	}
	s.end()
	return s.words
}

// splitter builds words from characters.
type splitter struct {
	words []string
	word  []byte
	runes int
	// before is the previous character if its script has no spaces between words,
	// or 0.
	before rune
	// apostrophe reports whether the word follows an apostrophe, like the s of
	// "Ann's".
	apostrophe bool
}

func (s *splitter) add(r rune) {
	switch {
	case r < utf8.RuneSelf:
		s.addASCII(byte(r))
	case unspaced(r):
		before := s.before
		s.end()
		s.words = append(s.words, string(r))
		if before != 0 {
			s.words = append(s.words, string([]rune{before, r}))
		}
		s.before = r
	case unicode.IsLetter(r) || unicode.IsDigit(r):
		s.append(fold(r))
	case unicode.Is(unicode.M, r): // an accent that does not combine with its letter
	case unicode.Is(unicode.So, r): // an emoji is a word
		s.end()
		s.words = append(s.words, string(r))
	case r == '’':
		s.end()
		s.apostrophe = true
	default:
		s.end()
	}
}

func (s *splitter) addASCII(c byte) {
	switch {
	case 'A' <= c && c <= 'Z':
		s.append(rune(c + 'a' - 'A'))
	case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
		s.append(rune(c))
	case c == '\'':
		s.end()
		s.apostrophe = true
	default:
		s.end()
	}
}

func (s *splitter) append(r rune) {
	s.before = 0
	if s.runes++; s.runes <= maxWord {
		s.word = utf8.AppendRune(s.word, r)
	}
}

// end ends a word.
func (s *splitter) end() {
	if s.runes > 0 && (!s.apostrophe || s.runes > 2) { // not the rest of "it's", "we'll"
		s.words = append(s.words, string(s.word))
	}
	s.word, s.runes, s.before, s.apostrophe = s.word[:0], 0, 0, false
}

// fold returns a letter without case and accent.
func fold(r rune) rune {
	r = unicode.ToLower(r)
	if r == 'й' || !unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Greek) {
		return r
	}
	var whole [utf8.UTFMax]byte
	parts := norm.NFD.Bytes(whole[:utf8.EncodeRune(whole[:], r)])
	if base, _ := utf8.DecodeRune(parts); base != utf8.RuneError {
		return base
	}
	return r
}

// Unspaced reports whether a text has characters of scripts without spaces between
// words, so that a word may be inside what looks like another word.
func Unspaced(text string) bool { return strings.ContainsFunc(text, unspaced) }

// unspaced reports whether the script of a character has no spaces between words.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
