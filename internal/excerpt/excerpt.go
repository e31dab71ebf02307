// Package excerpt names functions of package display for the host.
package excerpt

import "github.com/toolhost/toolhost/sdk/display"

// Of is [display.Cut].
func Of(text string, most int) string { return display.Cut(text, most) }

// Head is [display.Head].
func Head[T ~string | ~[]byte](text T, most int) T { return display.Head(text, most) }

// Characters is [display.Characters].
func Characters(text string, most int) string { return display.Characters(text, most) }

// Printable is [display.Printable].
func Printable(text string, most int) string { return display.Printable(text, most) }
