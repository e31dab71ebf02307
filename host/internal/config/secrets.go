package config

import (
	"slices"
	"strconv"
	"strings"
)

// minSecret is the length from which a value is hidden wherever it occurs. A
// shorter one keeps nothing secret and occurs in any text by chance; it is
// hidden where it stands in quotes.
const minSecret = 4

// secrets collects what env and file return.
type secrets struct {
	values []string
}

// add remembers a value, and the form of it without space around it: a file
// usually ends with a newline that its reader trims.
func (s *secrets) add(value string) {
	for _, v := range []string{value, strings.TrimSpace(value)} {
		if v != "" && !slices.Contains(s.values, v) {
			s.values = append(s.values, v)
		}
	}
}

// long returns the secrets that are to be hidden wherever they occur.
func (s *secrets) long() []string {
	return slices.DeleteFunc(slices.Clone(s.values), func(v string) bool { return len(v) < minSecret })
}

// in returns text without the secrets in it.
func (s *secrets) in(text string) string {
	const hidden = "(hidden)"
	byLength := slices.SortedFunc(slices.Values(s.values), func(a, b string) int { return len(b) - len(a) })
	for _, v := range byLength {
		quoted := strconv.Quote(v)
		text = strings.ReplaceAll(text, quoted, hidden)
		if len(v) >= minSecret {
			text = strings.ReplaceAll(text, v, hidden)
			text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], hidden)
		}
	}
	return text
}
