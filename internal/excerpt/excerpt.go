// Package excerpt shortens texts. Most of it names functions of package display for the host.
package excerpt

import (
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
)

// Sentence returns the first sentence of a text, without its full stop, as one line.
func Sentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i]
	}
	return strings.TrimSuffix(text, ".")
}

// Of is [display.Cut].
func Of(text string, most int) string { return display.Cut(text, most) }

// Head is [display.Head].
func Head[T ~string | ~[]byte](text T, most int) T { return display.Head(text, most) }

// Characters is [display.Characters].
func Characters(text string, most int) string { return display.Characters(text, most) }

// Printable is [display.Printable].
func Printable(text string, most int) string { return display.Printable(text, most) }
