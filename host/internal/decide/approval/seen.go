package approval

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxMarks is how many accents a letter may have.
const maxMarks = 4

// pen writes text so that an approver sees each character. In addition to the escapes of
// [tool.Visible], it writes as Go escapes: blanks other than spaces, characters without a
// shape, variation selectors, and accents without a letter or in large numbers, which
// would cover their neighbors.
type pen struct {
	marks  int  // accents in a row
	letter bool // the character before the accents is a letter or a digit
}

// write appends one character; text is its encoding.
func (p *pen) write(b *strings.Builder, char rune, text string) {
	if char < utf8.RuneSelf {
		p.marks, p.letter = 0, isWord(char)
		b.WriteString(tool.Visible(text))
		return
	}
	mark := unicode.Is(unicode.M, char)
	if mark {
		p.marks++
	} else {
		p.marks = 0
	}
	loose := mark && (!p.letter || p.marks > maxMarks || unicode.Is(unicode.Me, char))
	if !mark {
		p.letter = isWord(char)
	}
	if seen := tool.Visible(text); seen != text || !loose && !blank(char) {
		b.WriteString(seen)
		return
	}
	if char <= 0xffff {
		fmt.Fprintf(b, `\u%04x`, char)
		return
	}
	fmt.Fprintf(b, `\U%08x`, char)
}

// plain returns how many of the first bytes of text, at most limit, are ASCII characters
// that need no escape and are neither stop nor stop2. They can be written without the pen,
// which must then [pen.skip] them.
func plain[T string | []byte](text T, limit int, stop, stop2 byte) int {
	limit = min(limit, len(text))
	for i := range limit {
		if c := text[i]; c < ' ' || c >= 0x7f || c == stop || c == stop2 {
			return i
		}
	}
	return max(0, limit)
}

// skip records the last character that was written without the pen.
func (p *pen) skip(last byte) { p.marks, p.letter = 0, isWord(rune(last)) }

func isWord(char rune) bool { return unicode.IsLetter(char) || unicode.IsDigit(char) }

// blank reports whether a character is invisible, or looks like a space without being
// one. Characters that this version of Unicode does not define count as blank.
func blank(char rune) bool {
	switch char {
	case '\u2800', '\ufffc', '\U0001d159': // the blank of Braille, a place for an object, a note without a head
		return true
	}
	return !unicode.IsGraphic(char) || unicode.In(char, unicode.Zs, unicode.Variation_Selector)
}

// seen returns text as an approver sees it, with line breaks and tabs.
func seen(text string) string {
	var b strings.Builder
	var p pen
	for i := 0; i < len(text); {
		char, size := utf8.DecodeRuneInString(text[i:])
		p.write(&b, char, text[i:i+size])
		i += size
	}
	return b.String()
}

// seenLine returns text as one line.
func seenLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(seen(text))
}

const (
	// maxSuspicions bounds the warnings about one record.
	maxSuspicions = 8
	// maxWord bounds the bytes of a word in a warning.
	maxWord = 80
)

// signTwins are characters that look like signs of ASCII, each followed by that sign.
const signTwins = "∕/⁄/⧸/╱/‐-‑-−-∶:꞉:׃:ǃ!ꓸ.∗*⁎*"

// twinScripts are the alphabets with letters that look like ASCII letters. All of their
// words are shown with escapes.
var twinScripts = []*unicode.RangeTable{
	unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu, unicode.Deseret,
}

var rightToLeft = []*unicode.RangeTable{
	unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam,
}

// suspicions returns warnings about a record's texts: about words that mix alphabets or
// can look like other words, and about letters that are written from right to left.
func suspicions(r Record) []string {
	s := suspector{left: maxShown, seen: make(map[string]bool)}
	for _, name := range []string{r.Tool, r.Plugin, r.User, r.Client} {
		s.text(name)
	}
	s.text(r.Context)
	for _, file := range r.Sensitive {
		s.text(file)
	}
	if !isASCII(r.Arguments) {
		s.value(decoded(r.Arguments))
	}
	if r.Preview != nil {
		s.text(r.Preview.Summary)
		for _, c := range r.Preview.Content {
			s.text(c.Name)
			s.text(c.URI)
			if c.IsText() {
				s.text(string(c.Data))
			}
		}
	}
	if s.more > 0 {
		s.found = append(s.found, fmt.Sprintf("%d more such words", s.more))
	}
	if len(s.foreign) > 0 {
		s.found = append(s.found, "some words are in an alphabet whose letters can look like Latin ones: "+strings.Join(s.foreign, ", "))
	}
	if s.rightToLeft {
		s.found = append(s.found, "some letters are written from right to left: the order on the screen can differ from the order that counts")
	}
	return s.found
}

func beyondASCII(char rune) bool { return char >= utf8.RuneSelf }

// isASCII reports whether JSON contains only ASCII, also in escapes.
func isASCII(text []byte) bool {
	return !slices.ContainsFunc(text, func(c byte) bool { return c >= utf8.RuneSelf }) && !strings.Contains(string(text), `\u`)
}

// suspector collects warnings.
type suspector struct {
	found       []string
	foreign     []string        // words of another alphabet, with their escapes
	left        int             // how many more bytes to look at
	seen        map[string]bool // words with a warning; bounded as found and foreign are
	more        int
	rightToLeft bool
}

// value checks the strings in a JSON value.
func (s *suspector) value(value any) {
	switch v := value.(type) {
	case string:
		s.text(v)
	case []any:
		for _, item := range v {
			s.value(item)
		}
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			s.text(name)
			s.value(v[name])
		}
	}
}

// text checks each word of a text.
func (s *suspector) text(text string) {
	text = text[:min(len(text), s.left)] // the rest is not shown either
	s.left -= len(text)
	if strings.IndexFunc(text, beyondASCII) < 0 {
		return
	}
	for word := range strings.FieldsFuncSeq(text, separates) {
		if strings.IndexFunc(word, beyondASCII) < 0 {
			continue
		}
		w := inspect(word)
		s.rightToLeft = s.rightToLeft || w.rightToLeft
		switch {
		case w.mixed():
			s.warn(word, "mixes alphabets")
		case w.styled:
			s.warn(word, fmt.Sprintf("has characters that only look like those of %q", w.plain))
		case w.foreign:
			s.note(word)
		}
	}
}

// warn adds a warning about a word.
func (s *suspector) warn(word, what string) {
	word = excerpt.Of(word, maxWord)
	switch {
	case s.seen[word]:
	case len(s.found) >= maxSuspicions:
		s.more++
	default:
		s.seen[word] = true
		s.found = append(s.found, fmt.Sprintf("the word \"%s\" %s: it is %+q", seenLine(word), seenLine(what), word))
	}
}

// note adds a word of another alphabet.
func (s *suspector) note(word string) {
	word = excerpt.Of(word, maxWord)
	if !s.seen[word] && len(s.foreign) < maxSuspicions {
		s.seen[word] = true
		s.foreign = append(s.foreign, fmt.Sprintf("\"%s\" is %+q", seenLine(word), word))
	}
}

// separates reports whether a character separates words. Signs that look like ASCII
// belong to words, so that they are found.
func separates(char rune) bool {
	return !isWord(char) && !unicode.Is(unicode.M, char) && plainOf(char) == char
}

// word is the result of [inspect].
type word struct {
	latin, foreign      bool // letters
	digits, otherDigits bool // of ASCII, and others
	styled, rightToLeft bool
	plain               string // with ASCII in place of styled letters
}

func (w word) mixed() bool { return w.latin && w.foreign || w.digits && w.otherDigits }

// inspect checks the characters of a word.
func inspect(text string) word {
	var w word
	var b strings.Builder
	for _, char := range text {
		plain := plainOf(char)
		b.WriteRune(plain)
		w.styled = w.styled || plain != char
		w.latin = w.latin || unicode.Is(unicode.Latin, char)
		w.foreign = w.foreign || unicode.IsOneOf(twinScripts, char)
		w.rightToLeft = w.rightToLeft || unicode.IsOneOf(rightToLeft, char)
		if unicode.Is(unicode.Nd, char) {
			w.digits = w.digits || !beyondASCII(char)
			w.otherDigits = w.otherDigits || beyondASCII(char)
		}
	}
	w.plain = b.String()
	return w
}

// plainOf returns the ASCII character for a wide, bold or other form of it, and for a sign
// that looks the same. It returns other characters unchanged.
func plainOf(char rune) rune {
	if !beyondASCII(char) {
		return char
	}
	if i := strings.IndexRune(signTwins, char); i >= 0 {
		return rune(signTwins[i+utf8.RuneLen(char)])
	}
	if char < 0x250 || unicode.Is(unicode.No, char) {
		return char // ordinary text has those
	}
	if plain := norm.NFKC.String(string(char)); len(plain) == 1 && plain[0] > ' ' {
		return rune(plain[0])
	}
	return char
}
