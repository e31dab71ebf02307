package roots

import (
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/sdk/sensitive"
)

// DefaultSecrets returns the patterns of names that usually hold secrets, see
// [sensitive.Default] and [sensitive.Parse]. Below the folders there are no
// absolute paths: a pattern that begins with "/" is one of names like others.
func DefaultSecrets() []string { return sensitive.Default() }

// CheckSecrets reports, for an operator, the first pattern that [Open] would
// refuse.
func CheckSecrets(texts []string) error {
	_, err := parsePatterns("secret", texts)
	return err
}

// parsePatterns reads patterns of the given kind, which is named in the error.
func parsePatterns(kind string, texts []string) (sensitive.Patterns, error) {
	names := make([]string, len(texts))
	for i, text := range texts {
		glob, takeBack := strings.CutPrefix(text, "!")
		if names[i] = strings.Trim(glob, "/"); takeBack {
			names[i] = "!" + names[i]
		}
	}
	all, err := sensitive.Parse(names)
	if err != nil {
		return nil, fmt.Errorf("%s %w", kind, err)
	}
	return all, nil
}
