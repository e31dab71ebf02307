package users

import (
	"context"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/plugins/memory/internal/terms"
)

const (
	// nearlySame is the share of their words that two notes have in common which
	// say nearly the same.
	nearlySame = 0.8
	// fewWords are too few to say that.
	fewWords = 4
)

// Alike returns a note of the same category that has nearly the same words, or
// nil.
func (u *User) Alike(ctx context.Context, n *store.Note, now time.Time) (*store.Note, error) {
	index, err := u.Index(ctx)
	if err != nil || index == nil || len(n.Passages) != 1 {
		return nil, err
	}
	words := wordSet(n.Content)
	if len(words) < fewWords {
		return nil, nil //nolint:nilnil // what the method promises
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

// wordSet returns the terms of a text, and its words that say nothing: "not"
// may be all that two notes differ in.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range terms.Split(text) {
		set[w] = true
	}
	return set
}

// inCommon returns what share of all words two texts have in common.
func inCommon(a, b map[string]bool) float64 {
	both := 0
	for w := range a {
		if b[w] {
			both++
		}
	}
	return float64(both) / float64(max(len(a)+len(b)-both, 1))
}
