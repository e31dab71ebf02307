package main

import (
	"context"
	"fmt"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type resetArgs struct {
	Path string `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo" default:"."`
	Rev  string `json:"rev,omitempty" jsonschema:"revision" default:"HEAD"`
	Mode string `json:"mode,omitempty" jsonschema:"keep: also files, if unchanged; merge: undo a merge; hard: discard changes" enum:"soft,mixed,keep,merge,hard" default:"mixed"`
}

// resetting is a call of git_reset.
type resetting struct {
	*repository
	head  *state
	mode  string
	to    Commit
	left  []Commit // the commits that the branch loses, see between
	lost  *undone
	files []string // the files that change
}

// planReset finds the changes that a call of git_reset discards.
func planReset(ctx context.Context, s *access, in resetArgs) (change, error) {
	r, err := s.unlocked(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	c := &resetting{repository: r, mode: in.Mode}
	id, err := r.commit(ctx, in.Rev)
	if err != nil {
		return nil, err
	}
	if c.head, err = r.lookAt(ctx, "no"); err != nil {
		return nil, err
	}
	if c.to, err = r.describe(ctx, id); err != nil {
		return nil, err
	}
	if c.left, err = r.between(ctx, c.head.Commit, id); err != nil {
		return nil, err
	}
	if in.Mode == "soft" || in.Mode == "mixed" {
		c.lost, err = r.undo(ctx, "index", id, nil)
		return c, err
	}
	if c.lost, err = r.undo(ctx, "both", id, nil); err != nil {
		return nil, err
	}
	c.files = c.lost.files
	if err := r.refuseProtected(c.files); err != nil {
		return nil, err
	}
	return c, r.refuseLoss(ctx, id, c.files)
}

func (c *resetting) State(context.Context) (string, error) {
	return stateOf("git_reset", c.gitDir, c.mode, c.head.Name, c.head.Commit, c.to.ID, c.lost.digest()), nil
}

func (c *resetting) Show(context.Context) (string, []tool.Content, error) {
	summary := fmt.Sprintf("Resets %s (%s) to %s: %s", c.head.head(), c.mode, short(c.to.ID), c.to.Subject)
	if c.mode == "hard" {
		summary += fmt.Sprintf("; discards changes to %s", display.Plural(len(c.files), "file"))
	}
	return summary, append(commitsLeft("Commits that the branch loses:", c.left), c.lost.content()...), nil
}

func (c *resetting) Apply(ctx context.Context) (tool.Result, error) {
	args := []string{"reset", "--" + c.mode, "--quiet", "--no-recurse-submodules", c.to.ID}
	if _, err := c.run(ctx, command{args: args, writes: true, env: c.anybody()}); err != nil {
		return tool.Result{}, err
	}
	facts := map[string]any{"repo": c.shown, "commit": c.to.ID, "before": c.head.Commit}
	text := fmt.Sprintf("Reset %s to %s: %s", c.head.head(), short(c.to.ID), c.to.Subject)
	if c.head.Commit != c.to.ID {
		text += "\nIt was at " + c.head.Commit
	}
	return done(facts, c.changedFiles(c.files, "reset"), "%s", text), nil
}
