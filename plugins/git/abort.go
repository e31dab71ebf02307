package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// aborting is a call that undoes a merge, cherry-pick, revert or rebase in progress. It is
// a git_reset with mode merge to HEAD, or for a rebase to where the branch was.
type aborting struct {
	*resetting
	doing string
	saved *rebaseState // the rebase, or nil
}

// planAbort finds the changes that the end of an operation in progress discards.
func planAbort(ctx context.Context, s *access, path, doing string) (change, error) {
	r, err := s.repository(ctx, path)
	if err != nil {
		return nil, err
	}
	if r.inProgress() != doing {
		return nil, tool.Errorf(tool.NotFound, "No %s is in progress", doing).WithHint("git_status shows what is in progress")
	}
	// Git's own run over several commits has a state of its own.
	if _, err := os.Lstat(filepath.Join(r.gitDir, "sequencer")); err == nil {
		return nil, tool.Errorf(tool.Conflict, "The %s of several commits was started outside of this tool", doing).
			WithHint("the user must finish it (git %s --continue) or undo it (git %[1]s --abort)", doing)
	}
	rev := "HEAD"
	var saved *rebaseState
	if doing == "rebase" {
		if saved, err = r.rebaseState(ctx); err != nil {
			return nil, err
		}
		rev = saved.orig
	}
	c, err := planReset(ctx, s, resetArgs{Path: path, Rev: rev, Mode: "merge"})
	if err != nil {
		return nil, err
	}
	a := &aborting{c.(*resetting), doing, saved} //nolint:errcheck,forcetypeassert // planReset returns nothing else
	if saved != nil {
		return a, saved.refuseElsewhere(a.head)
	}
	return a, nil
}

func (c *aborting) State(ctx context.Context) (string, error) {
	state, err := c.resetting.State(ctx)
	parts := []string{"abort", c.doing, state}
	if c.saved != nil {
		parts = append(parts, c.saved.branch)
	}
	return stateOf(parts...), err
}

func (c *aborting) Show(context.Context) (string, []tool.Content, error) {
	summary := fmt.Sprintf("Undoes the %s in progress on %s of %s; discards changes to %s", c.doing, c.after().head(), c.place(), display.Plural(len(c.files), "file"))
	return summary, c.lost.content(), nil
}

func (c *aborting) Apply(ctx context.Context) (tool.Result, error) {
	if _, err := c.resetting.Apply(ctx); err != nil {
		return tool.Result{}, err
	}
	c.conclude()
	after := c.after()
	if c.saved != nil {
		if err := c.endRebase(context.WithoutCancel(ctx), c.saved); err != nil {
			return tool.Result{}, err
		}
	}
	facts := map[string]any{"repo": c.shown, "commit": after.Commit, "files": len(c.files)}
	return done(facts, c.changedFiles(c.files, "abort "+c.doing), "Undid the %s: %s is at %s", c.doing, after.head(), short(after.Commit)), nil
}

// after returns HEAD as the call leaves it.
func (c *aborting) after() *state {
	if c.saved != nil {
		return c.saved.before()
	}
	return c.head
}
