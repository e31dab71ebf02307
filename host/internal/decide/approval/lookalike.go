package approval

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/toolhost/toolhost/internal/excerpt"
)

const (
	// maxSuspicions bounds the warnings about one record.
	maxSuspicions = 8
	// maxWord bounds the bytes of a word in a warning.
	maxWord = 80
)

// signTwins are characters that look like signs of ASCII, each followed by that sign.
const signTwins = "∕/⁄/⧸/╱/‐-‑-−-∶:꞉:׃:ǃ!ꓸ.∗*⁎*"

// twinScripts are the alphabets with letters that look like those of ASCII. Which of
// their letters do is not asked: all their words are shown with escapes.
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

// value looks at the strings in a JSON value.
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

// text looks at each word of a text.
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
	plain               string // with ASCII instead of what is styled
}

func (w word) mixed() bool { return w.latin && w.foreign || w.digits && w.otherDigits }

// inspect looks at the characters of a word.
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

// plainOf returns the ASCII character of which a character is another form: wide, bold,
// or a sign that looks the same. It returns other characters unchanged.
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
