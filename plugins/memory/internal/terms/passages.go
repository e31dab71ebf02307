package terms

import (
	"strings"
	"unicode/utf8"
)

// maxPassage is how long a passage is at most, in characters.
const maxPassage = 1000

// A Passage is a part of a text, by its bytes.
type Passage struct {
	Start, Stop int
}

// Passages cuts a text into passages, which together are all of it: at the end of
// a paragraph if there is one in the second half of what fits, else of a line, a
// sentence or a word.
func Passages(text string) []Passage {
	var all []Passage
	for start := 0; ; {
		rest := text[start:]
		stop := fits(rest)
		if stop == len(rest) {
			return append(all, Passage{start, len(text)})
		}
		for _, end := range []string{"\n\n", "\n", ". ", "。", " "} {
			if at := strings.LastIndex(rest[:stop], end); at >= stop/2 {
				stop = at + len(end)
				break
			}
		}
		all = append(all, Passage{start, start + stop})
		start += stop
	}
}

// fits returns how many bytes of a text make a passage.
func fits(text string) int {
	if len(text) <= maxPassage {
		return len(text)
	}
	stop := 0
	for range maxPassage {
		if stop == len(text) {
			break
		}
		_, size := utf8.DecodeRuneInString(text[stop:])
		stop += size
	}
	return stop
}
