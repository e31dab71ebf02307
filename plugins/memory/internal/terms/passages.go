package terms

import (
	"strings"
	"unicode/utf8"
)

// maxPassage is the maximum length of a passage in characters.
const maxPassage = 1000

// A Passage is a part of a text, from byte Start up to Stop.
type Passage struct {
	Start, Stop int
}

// Passages splits a text into consecutive passages, which together are the whole text. It splits
// at the end of a paragraph if there is one in the second half of the room, otherwise at the end
// of a line, a sentence or a word.
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

// fits returns how many bytes of a text fit into a passage.
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
