package terms

import (
	"slices"
	"strings"
)

const (
	// Shorter words have too many neighbors.
	minNear = 4
	// maxNear bounds the length of words to correct, in characters.
	maxNear = 24
)

// Near calls found with the term of every word that differs from a folded word by
// one changed, added or omitted letter, or by two swapped letters. The first letter
// is assumed to be right. found may get the same term more than once.
func Near(word string, found func(term string)) {
	letters := []rune(word)
	alphabet := alphabetOf(letters)
	if len(letters) < minNear || len(letters) > maxNear || alphabet == "" {
		return
	}
	other := make([]rune, 0, len(letters)+1)
	for i := 1; i <= len(letters); i++ {
		if i < len(letters) {
			other = append(append(other[:0], letters[:i]...), letters[i+1:]...)
			found(stem(string(other)))
		}
		if i+1 < len(letters) && letters[i] != letters[i+1] {
			other = append(other[:0], letters...)
			other[i], other[i+1] = other[i+1], other[i]
			found(stem(string(other)))
		}
		for _, r := range alphabet {
			if i < len(letters) && r != letters[i] {
				other = append(other[:0], letters...)
				other[i] = r
				found(stem(string(other)))
			}
			other = slices.Insert(append(other[:0], letters...), i, r)
			found(stem(string(other)))
		}
	}
}

// alphabetOf returns the alphabet of a word, or "" if it is not known.
func alphabetOf(word []rune) string {
	for _, alphabet := range []string{"abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщъыьэюя"} {
		if !slices.ContainsFunc(word, func(r rune) bool { return !strings.ContainsRune(alphabet, r) }) {
			return alphabet
		}
	}
	return ""
}
