package config

import (
	"slices"
	"strconv"
	"strings"
)

// minSecret is the least length of a value that is hidden wherever it occurs. A
// shorter value is no secret and occurs in any text by chance; it is hidden only in
// quotes.
const minSecret = 4

// secrets collects the values of env() and file() and of secret blocks.
type secrets struct {
	values []string
}

// add adds a value, and the value without space around it: a file usually ends with a
// newline, which plugins trim.
func (s *secrets) add(value string) {
	for _, v := range []string{value, strings.TrimSpace(value)} {
		if v != "" && !slices.Contains(s.values, v) {
			s.values = append(s.values, v)
		}
	}
}

// long returns the secrets that are hidden wherever they occur.
func (s *secrets) long() []string {
	return slices.DeleteFunc(slices.Clone(s.values), func(v string) bool { return len(v) < minSecret })
}

// in returns text with the secrets hidden.
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
