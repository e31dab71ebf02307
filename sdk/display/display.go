// Package display prepares texts that others chose for a screen: an approval, a
// terminal, a log, the result that a model reads. It cuts them between characters,
// and escapes what would move the cursor, change the direction of text or stay
// invisible. Use it for every path, name and text that your program did not write
// itself.
//
// A field or a function of type [Name] or [Line] cannot reach a screen unescaped by
// mistake: package fmt escapes it, and as a string it does not compile.
package display

import (
	"fmt"
	"strings"
)

// Name is an untrusted name, such as the path of a file or a branch. Package fmt writes
// it with [VisibleName]; encoding/json writes it unchanged.
type Name string

// String returns the name for a line of text.
func (n Name) String() string { return VisibleName(string(n)) }

// Line is an untrusted text, such as the subject of a commit. Package fmt writes it on
// one line, with [Visible]; encoding/json writes it unchanged.
type Line string

// String returns the text on one line.
func (l Line) String() string { return strings.ReplaceAll(Visible(string(l)), "\n", " ") }

// Names lists up to ten names on one line, and counts the others.
func Names[T ~string](names []T) string {
	const most = 10
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == most {
			fmt.Fprintf(&b, "and %d more", len(names)-most)
			break
		}
		b.WriteString(VisibleName(string(name)))
	}
	return b.String()
}

// Plural returns a number with its noun: "1 file", "2 files", "3 directories".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	switch {
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	case strings.HasSuffix(noun, "s"):
		noun += "es"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
