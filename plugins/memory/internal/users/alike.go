package users

import (
	"context"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

const (
	// nearlySame is the share of common words from which on two notes are nearly
	// identical.
	nearlySame = 0.8
	// fewWords is the number of words below which notes are not compared.
	fewWords = 4
)

// Alike returns a note of the same category with nearly the same words, or nil.
func (u *User) Alike(ctx context.Context, n *store.Note, now time.Time) (*store.Note, error) {
	index, err := u.Index(ctx)
	if err != nil || index == nil || len(n.Passages) != 1 {
		return nil, err
	}
	words := wordSet(n.Content)
	if len(words) < fewWords {
		return nil, nil //nolint:nilnil // the method's promise
	}
	notes, err := u.store.ByIDs(ctx, index.Alike(n.Passages[0].Terms, n.Category, now))
	if err != nil {
		return nil, err
	}
	var found *store.Note
	best := nearlySame
	for i := range notes {
		if share := inCommon(words, wordSet(notes[i].Content)); share >= best {
			found, best = &notes[i], share
		}
	}
	return found, nil
}

// wordSet returns all words of a text, stop words included: two notes may differ
// only in "not".
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range terms.Split(text) {
		set[w] = true
	}
	return set
}

// inCommon returns the share of all words of two texts that are in both.
func inCommon(a, b map[string]bool) float64 {
	both := 0
	for w := range a {
		if b[w] {
			both++
		}
	}
	return float64(both) / float64(max(len(a)+len(b)-both, 1))
}
