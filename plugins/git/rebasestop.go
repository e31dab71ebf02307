package main

import (
	"context"

	"github.com/toolhost/toolhost/sdk/tool"
)

// planContinue computes the rest of a rebase: the staged resolution as a commit, and the
// commits that remain.
func planContinue(ctx context.Context, s *access, path string) (change, error) {
	r, err := s.unlocked(ctx, path)
	if err != nil {
		return nil, err
	}
	saved, err := r.rebaseState(ctx)
	if err != nil {
		return nil, err
	}
	c := &rebasing{applying: &applying{repository: r, doing: "rebase"}, saved: saved}
	if c.head, err = r.lookAt(ctx, "no"); err != nil {
		return nil, err
	}
	if conflicts := c.head.conflicts(); len(conflicts) > 0 {
		return nil, r.unresolved(conflicts)
	}
	if c.head.Name != "" {
		return nil, tool.Errorf(tool.Conflict, "HEAD is on %s, but a rebase is in progress", c.head.head()).WithHint("undo the rebase with git_rebase and abort")
	}
	if c.author, err = r.identity(); err != nil {
		return nil, err
	}
	if err := c.remaining(ctx); err != nil {
		return nil, err
	}
	return c, c.replay(ctx, c.planResolved)
}

// remaining finds the steps of a rebase in progress.
func (c *rebasing) remaining(ctx context.Context) error {
	rest, err := c.saved.rest()
	if err != nil {
		return err
	}
	ids, err := c.commits(ctx, append([]string{c.head.Commit, c.saved.stopped}, rest...)...)
	if err != nil {
		return err
	}
	all, err := c.sources(ctx, ids...)
	if err != nil {
		return err
	}
	c.from = all[0]
	for _, s := range all[1:] {
		if len(s.parents) > 1 {
			return otherRebase()
		}
		c.steps = append(c.steps, step{source: s})
	}
	return nil
}

// planResolved is plan for steps whose first one is resolved in the index.
func (c *rebasing) planResolved(ctx context.Context) error {
	m, err := c.merger()
	if err != nil {
		return err
	}
	defer m.Close()
	x, err := c.newIndexWith(m.objects)
	if err != nil {
		return err
	}
	defer x.Close()
	if err := x.copy(); err != nil {
		return err
	}
	if c.index, err = x.tree(ctx); err != nil {
		return err
	}
	c.steps[0].tree = c.index
	if c.call.InPreview() {
		c.staged, err = c.previewOf(ctx, "diff-index", append([]string{"--cached"}, c.patchFlags()...), []string{c.head.Commit}, nil, x.env)
		if err != nil {
			return err
		}
	}
	return c.planIn(ctx, m)
}

// stop leaves a conflict for the user: HEAD is at the last commit that was made, and the
// branch stays where it is until the rebase ends. The record names the commit in conflict
// only when the index marks the conflicts: if the call is cut short before, nothing can
// commit the conflict markers, and the rebase can be undone.
func (c *rebasing) stop(ctx context.Context, tip string) error {
	saved, begins := c.saved, c.saved == nil
	var err error
	if begins {
		saved = &rebaseState{branch: c.head.Name, onto: c.onto, orig: c.head.Commit}
		err = saved.write(c.repository, c.steps, c.stopped)
	} else {
		err = c.noteStopped("")
	}
	if err != nil {
		return noRecord(err)
	}
	if err := c.moveFiles(ctx, c.tree); err != nil {
		if begins {
			_ = c.forgetRebase() // the error says why nothing has begun
		} else if ctx.Err() == nil { // git failed before it changed the index
			_ = c.noteStopped(saved.stopped) // the error says what failed
		}
		return err
	}
	ctx = context.WithoutCancel(ctx) // the files have changed
	if err := c.mark(ctx); err != nil {
		return err
	}
	detached := *c.head
	detached.Name = ""
	if err := c.moveHead(ctx, &detached, tip, "rebase: "+c.steps[c.stopped].subject()); err != nil {
		return err
	}
	if !begins {
		if err := saved.write(c.repository, c.steps, c.stopped); err != nil {
			return noRecord(err)
		}
	}
	s := c.steps[c.stopped]
	if err := c.note("rebase", s.id, s.message); err != nil {
		return err
	}
	if err := c.noteStopped(s.id); err != nil {
		return noRecord(err)
	}
	return tool.Errorf(tool.Conflict, "%s", c.inConflict()).WithHint(rebaseHint)
}

func noRecord(err error) *tool.Error {
	return tool.Errorf(tool.Unavailable, "The state of the rebase could not be written").WithHint("undo it with git_rebase and abort").WithCause(err)
}

// finish moves the branch to the last commit, and ends the rebase.
func (c *rebasing) finish(ctx context.Context, tip string) error {
	if branch := c.saved.branch; branch != "" {
		args := []string{"update-ref", "--no-deref", "-m", "rebase", "refs/heads/" + branch, tip, c.saved.orig}
		if _, err := c.run(ctx, command{args: args, writes: true, env: c.anybody()}); err != nil {
			return err
		}
	}
	return c.endRebase(ctx, c.saved)
}
