package main

import (
	"context"
	"fmt"

	"github.com/toolhost/toolhost/sdk"
)

// ShownStash is the result of git_stash with the action show.
type ShownStash struct {
	Stash Stash `json:"stash"`
	// Diff is the difference between the commit that the stash was made on and the stash.
	Diff
	Untracked *Diff `json:"untracked,omitempty" jsonschema:"the untracked files in the stash, with the last part of the patch"`
}

// Text implements [sdk.Texter].
func (s ShownStash) Text() string {
	text := fmt.Sprintf("stash %d %s %s: %s\n", s.Stash.Number, short(s.Stash.Commit), s.Stash.Date, s.Stash.Message) + s.Diff.Text()
	if s.Untracked != nil {
		text += "Untracked files:\n" + s.Untracked.Text()
	}
	return text
}

// showStash shows the changes in a stash, without sensitive and forbidden files. It lists
// its untracked files without their content.
func (r *repository) showStash(ctx context.Context, s Stash, cursor sdk.Cursor) (ShownStash, error) {
	shown := ShownStash{Stash: s, Diff: Diff{Repo: r.shown}}
	what, err := r.withoutSensitive([]string{s.Commit + "^1", s.Commit}, nil)
	if err != nil {
		return shown, err
	}
	if err := r.readDiff(ctx, &shown.Diff, "diff", what, cursor, r.budget/2-overhead); err != nil || shown.NextCursor != "" {
		return shown, err
	}
	id, err := r.commit(ctx, s.Commit+"^3")
	if isMissing(err) {
		return shown, nil
	}
	if err != nil {
		return shown, err
	}
	shown.Untracked = &Diff{Repo: r.shown}
	p := &page{limit: maxLimit, room: r.budget/2 - overhead}
	return shown, r.listDiff(ctx, shown.Untracked, r.selectAllowed([]string{emptyTree(id), id}, nil), p)
}
