package config

import (
	"math/rand/v2"
	"path"
	"testing"
)

// TestCovers: where covers reports true, every name that matches the second pattern
// matches the first.
func TestCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := make([]string, 300)
	for i := range names {
		names[i] = someText(random, "ab_", 5)
	}
	covering := 0
	for range 5000 {
		other, pattern := somePattern(random), somePattern(random)
		if !covers(other, pattern) {
			continue
		}
		covering++
		for _, name := range names {
			one, _ := path.Match(pattern, name)
			if all, _ := path.Match(other, name); one && !all {
				t.Fatalf("covers(%q, %q), but %q matches the second only", other, pattern, name)
			}
		}
	}
	if covering < 100 {
		t.Errorf("%d patterns cover others: the test proves little", covering)
	}
}

// somePattern makes a valid pattern.
func somePattern(random *rand.Rand) string {
	for {
		text := someText(random, "ab_", 4)
		switch random.IntN(4) {
		case 0:
			text += "*"
		case 1:
			text = someText(random, `ab*?[]^\-`, 6)
		}
		if _, err := path.Match(text, ""); err == nil && text != "" {
			return text
		}
	}
}

func someText(random *rand.Rand, letters string, most int) string {
	text := make([]byte, random.IntN(most+1))
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return string(text)
}
