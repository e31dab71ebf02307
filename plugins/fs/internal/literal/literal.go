// Package literal finds the plain text that every match of a regular expression
// contains, so that a search need not look at the rest: an expression is
// followed only where one of its literals stands.
package literal

// Literal is a text to find.
type Literal struct {
	Text string
	// Fold ignores the case of the letters of ASCII. The text is in lower case
	// then.
	Fold bool
}

// lower is c in lower case, if it is a letter of ASCII.
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
