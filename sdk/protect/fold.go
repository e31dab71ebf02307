package protect

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fold returns the form of a name that a case-insensitive file system compares. It covers all
// spellings of names with ASCII letters: upper and lower case, the few other letters that fold
// to ASCII, ligatures, and ignored characters. Names with the same form may be one file.
func Fold(name string) string {
	ascii := true
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToLower(name)
	}
	var b strings.Builder
	for i, r := range name {
		if r == utf8.RuneError {
			// A byte that is not UTF-8 stays as it is.
			if _, size := utf8.DecodeRuneInString(name[i:]); size == 1 {
				b.WriteByte(name[i])
				continue
			}
		}
		foldRune(&b, r)
	}
	return b.String()
}

// foldRune appends the folded form of a character.
func foldRune(b *strings.Builder, r rune) {
	switch {
	case r == '\u00df' || r == '\u1e9e': // sharp s
		b.WriteString("ss")
	case r >= '\ufb00' && r <= '\ufb06':
		b.WriteString([...]string{"ff", "fi", "fl", "ffi", "ffl", "st", "st"}[r-'\ufb00'])
	case r >= '\uff01' && r <= '\uff5e': // full-width forms
		b.WriteRune(unicode.ToLower(r - '\uff01' + '!'))
	case unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
	default:
		// The smallest rune of a folding orbit: the ASCII one, if any.
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		b.WriteRune(unicode.ToLower(least))
	}
}
