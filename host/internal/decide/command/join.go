package command

import (
	"regexp"
	"strings"
)

// plainWord is a word that bash reads as it stands, in the place of a program,
// too: it sets no variable.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./@%+:,-]+$`)

// Join returns a line that bash would read as the words: a program and its
// arguments, which no shell has read.
func Join(words []string) string {
	joined := make([]string, len(words))
	for i, word := range words {
		if plainWord.MatchString(word) || i > 0 && plainWord.MatchString(strings.ReplaceAll(word, "=", "")) {
			joined[i] = word
			continue
		}
		joined[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(joined, " ")
}
