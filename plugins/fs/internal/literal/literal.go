// Package literal finds the plain text that every match of a regular expression contains.
// A search follows the expression only at the literals and skips the rest.
package literal

// Literal is a text to find.
type Literal struct {
	Text string
	// Fold ignores the case of ASCII letters. The text is then in lower case.
	Fold bool
}

// lower returns c in lower case if it is an ASCII letter.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c &^ 0x20
	}
	return c
}
