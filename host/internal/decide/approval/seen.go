package approval

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

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
