package schema

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agext/levenshtein"
)

// longestName is the longest name that is compared with others; beyond it,
// nobody has merely mistyped.
const longestName = 64

// Nearest returns the candidates that name may have been meant to be, at most
// three, nearest first.
func Nearest(name string, candidates []string) []string {
	if len(name) > longestName {
		return nil
	}
	type near struct {
		candidate string
		distance  int
	}
	var found []near
	for _, candidate := range candidates {
		if len(candidate) > longestName {
			continue
		}
		a, b := strings.ToLower(name), strings.ToLower(candidate)
		distance := levenshtein.Distance(a, b, nil)
		switch {
		case distance <= min(utf8.RuneCountInString(a), utf8.RuneCountInString(b))/3+1 && distance < utf8.RuneCountInString(b):
		case len(a) >= 3 && strings.Contains(b, a), len(b) >= 3 && strings.Contains(a, b):
		default:
			continue
		}
		found = append(found, near{candidate, distance})
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.candidate, b.candidate))
	})
	var names []string
	for _, n := range found[:min(3, len(found))] {
		names = append(names, n.candidate)
	}
	return names
}
