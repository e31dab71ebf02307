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

// Letters that look like letters of ASCII, each followed by the one that it looks like.
const (
	cyrillicTwins = "аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwӏlѵvАAВBЕEКKМMНHОOРPСCТTХXІIЈJЅSУYЗ3ЬbԌGҮYѴV"
	greekTwins    = "οoνvαaρpιiκkυuγyΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧX"
	armenianTwins = "օoսuհhոnցgզqյjՕOՏSԼL"
	otherTwins    = "∕/⁄/⧸/╱/‐-‑-−-∶:꞉:׃:ǃ!ꓸ.∗*⁎*"
)

// suspicions returns warnings about a record's texts: about words that mix alphabets or
// look like other words, and about letters that are written from right to left.
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
	left        int             // how many more bytes to look at
	seen        map[string]bool // words with a warning; bounded as found is
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
	foreign := false // there is a word of another alphabet that does not look like ASCII
	var twins []string
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
			s.warn(word, fmt.Sprintf("has characters that only look like those of %q", norm.NFKC.String(w.twin)))
		case w.letters > 1 && w.twins == w.letters:
			twins = append(twins, word)
		case w.letters > w.twins:
			foreign = true
		}
	}
	if foreign {
		return
	}
	for _, word := range twins {
		s.warn(word, fmt.Sprintf("looks like %q and is not", inspect(word).twin))
	}
}

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

// separates reports whether a character separates words. Signs that look like ASCII
// belong to words, so that they are found.
func separates(char rune) bool {
	return !isWord(char) && !unicode.Is(unicode.M, char) && twinOf(char) == 0
}

// word is the result of [inspect].
type word struct {
	letters, twins                            int // letters beyond ASCII, and how many of them look like ASCII
	latin, cyrillic, other, greekTwin, digits bool
	arabic                                    bool // the digits of ASCII
	styled, rightToLeft                       bool
	twin                                      string // what it looks like
}

func (w word) mixed() bool {
	n := 0
	for _, has := range []bool{w.latin, w.cyrillic, w.other, w.greekTwin, w.digits} {
		if has {
			n++
		}
	}
	return n > 1 || w.digits && w.arabic
}

// inspect looks at the characters of a word.
func inspect(text string) word {
	var w word
	var twin strings.Builder
	for _, char := range text {
		like := twinOf(char)
		if like == 0 {
			like = char
		}
		twin.WriteRune(like)
		switch {
		case unicode.Is(unicode.Latin, char):
			w.latin = true
		case char >= '0' && char <= '9':
			w.arabic = true
		case unicode.Is(unicode.Cyrillic, char):
			w.cyrillic = true
		case unicode.Is(unicode.Greek, char):
			w.greekTwin = w.greekTwin || like != char
		case unicode.In(char, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu, unicode.Deseret):
			w.other = true
		case unicode.Is(unicode.Nd, char) && char >= utf8.RuneSelf:
			w.digits = true
		}
		if char < utf8.RuneSelf {
			continue
		}
		w.styled = w.styled || isStyled(char) || like != char && !isWord(char)
		w.rightToLeft = w.rightToLeft || unicode.In(char, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam)
		if isWord(char) {
			w.letters++
			if like != char {
				w.twins++
			}
		}
	}
	w.twin = twin.String()
	return w
}

// twinOf returns the ASCII character that a character looks like, or 0.
func twinOf(char rune) rune {
	if char < utf8.RuneSelf || unicode.In(char, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) && char < 0xff00 {
		return 0
	}
	for _, twins := range []string{cyrillicTwins, greekTwins, armenianTwins, otherTwins} {
		if i := strings.IndexRune(twins, char); i >= 0 {
			like, _ := utf8.DecodeRuneInString(twins[i+utf8.RuneLen(char):])
			return like
		}
	}
	if isStyled(char) {
		return []rune(norm.NFKC.String(string(char)))[0]
	}
	return 0
}

// isStyled reports whether a character is another form of an ASCII character: wide, bold,
// or a letter as a sign.
func isStyled(char rune) bool {
	if char < 0x250 || unicode.Is(unicode.No, char) {
		return false // ordinary text has those
	}
	plain := norm.NFKC.String(string(char))
	return len(plain) == 1 && plain[0] > ' '
}
