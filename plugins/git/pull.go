package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type pullArgs struct {
	Path   string `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo" default:"."`
	Remote string `json:"remote,omitempty" jsonschema:"remote name"`
	Branch string `json:"branch,omitempty" jsonschema:"remote branch; default: the upstream"`
	Mode   string `json:"mode,omitempty" jsonschema:"what to do if both sides have new commits; ff_only refuses" enum:"ff_only,merge,rebase" default:"ff_only"`
}

// pulling is a call of git_pull.
type pulling struct {
	fetching
	mode   string
	head   *state
	branch string // the remote's branch
}

// planPull finds the remote and the branch of a call of git_pull.
func planPull(ctx context.Context, s *access, in pullArgs) (change, error) {
	r, err := s.unlocked(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	c := &pulling{fetching: fetching{repository: r}, mode: in.Mode}
	if c.head, err = r.lookAt(ctx, "no"); err != nil {
		return nil, err
	}
	switch conflicts, doing := c.head.conflicts(), r.inProgress(); {
	case c.head.Name == "":
		return nil, detached("pull into")
	case c.head.Commit == "":
		return nil, tool.Errorf(tool.NotFound, "The branch %s has no commits yet", display.Name(c.head.Name)).WithHint("git_fetch, then git_switch to a branch of the remote")
	case len(conflicts) > 0:
		return nil, r.unresolved(conflicts)
	case doing != "":
		return nil, unfinished(doing)
	}
	if c.mode != "ff_only" {
		if _, err := r.identity(); err != nil {
			return nil, err
		}
	}
	if c.from, err = r.remote(in.Remote, c.head.Name, false); err != nil {
		return nil, err
	}
	if c.branch, err = r.upstreamOf(c.head.Name, c.from, in.Branch); err != nil {
		return nil, err
	}
	c.in.Branch = c.branch
	c.specs, err = r.fetchSpecs(ctx, c.from, c.branch)
	return c, err
}

// unfinished returns the error for a change while a git operation is unfinished.
func unfinished(doing string) *tool.Error {
	err := tool.Errorf(tool.Conflict, "A %s is in progress", doing)
	if doing == "rebase" {
		return err.WithHint(rebaseHint)
	}
	if headFile(doing) != "" {
		return err.WithHint("resolve the conflicts, git_add the files and git_commit, or undo the %s with git_%s and abort", doing, strings.ReplaceAll(doing, "-", "_"))
	}
	return err.WithHint("the user must finish it (git %s --continue) or undo it (git %[1]s --abort)", doing)
}

func detached(what string) *tool.Error {
	return tool.Errorf(tool.Failed, "HEAD is detached: there is no branch to %s", what).WithHint("git_switch to a branch, or create one with create")
}

// upstreamOf returns named, or else the remote's branch that a local branch tracks.
func (r *repository) upstreamOf(branch string, from *remote, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	merged := r.config.last("branch", branch, "merge")
	if r.config.last("branch", branch, "remote") != from.name || !strings.HasPrefix(merged, "refs/heads/") {
		return "", tool.Errorf(tool.Failed, "The branch %s has no upstream in the remote %s", display.Name(branch), display.Name(from.name)).
			WithHint("set branch to the remote's branch, or git_push with set_upstream")
	}
	return strings.TrimPrefix(merged, "refs/heads/"), nil
}

func (c *pulling) State(context.Context) (string, error) {
	return stateOf("git_pull", c.gitDir, c.from.name, c.from.url, c.branch, c.mode, c.head.Name, c.head.Commit), nil
}

func (c *pulling) Show(context.Context) (string, []tool.Content, error) {
	how := map[string]string{"ff_only": "fast-forward only", "merge": "with a merge if needed", "rebase": "with a rebase if needed"}[c.mode]
	summary := fmt.Sprintf("Pulls %s from %s (%s) into %s of %s, %s", display.Name(c.branch), display.Name(c.from.name), display.Name(c.from.url), c.head.head(), c.place(), how)
	return summary, nil, nil
}

func (c *pulling) Apply(ctx context.Context) (tool.Result, error) {
	if _, _, err := c.fetch(ctx); err != nil {
		return tool.Result{}, err
	}
	ids, err := c.commits(ctx, c.from.tracking(c.branch), "HEAD")
	if err != nil {
		return tool.Result{}, err
	}
	if ids[1] != c.head.Commit {
		return tool.Result{}, sdk.ChangedSincePreview("the branch has moved")
	}
	to := ids[0]
	facts := map[string]any{"repo": c.shown, "remote": c.from.name, "branch": c.branch, "before": c.head.Commit}
	if known, err := c.contains(ctx, c.head.Commit, to); err != nil || known {
		facts["commit"] = c.head.Commit
		return done(facts, c.changedFiles(nil, "fetch"), "Already up to date: %s has all commits of %s", c.head.head(), display.Name(c.from.name+"/"+c.branch)), err
	}
	files, err := c.differing(ctx, c.head.Commit, to)
	if err != nil {
		return tool.Result{}, err
	}
	if err := c.refuseProtected(files); err != nil {
		return tool.Result{}, err
	}
	if err := c.refuseLossByPull(ctx, to); err != nil {
		return tool.Result{}, err
	}
	if err := c.integrate(ctx, to); err != nil {
		return tool.Result{}, err
	}
	now, err := c.commit(ctx, "HEAD")
	if err != nil {
		return tool.Result{}, err
	}
	facts["commit"] = now
	return done(facts, c.changedFiles(files, "pull"), "Pulled %s: %s moved from %s to %s, %s changed", display.Name(c.from.name+"/"+c.branch),
		c.head.head(), short(c.head.Commit), short(now), display.Plural(len(files), "file")), nil
}

// refuseLossByPull is refuseLoss for the files that the remote changed since the common
// ancestor of both sides.
func (c *pulling) refuseLossByPull(ctx context.Context, to string) error {
	out, err := c.run(ctx, command{args: []string{"merge-base", c.head.Commit, to}, exits: []int{1}})
	if err != nil || out.exit != 0 {
		return err // git itself reports histories without a common ancestor
	}
	files, err := c.differing(ctx, strings.TrimSpace(string(out.stdout)), to)
	if err != nil {
		return err
	}
	return c.refuseLoss(ctx, to, files)
}

// contains reports whether the history of commit contains other.
func (r *repository) contains(ctx context.Context, commit, other string) (bool, error) {
	out, err := r.run(ctx, command{args: []string{"merge-base", "--is-ancestor", other, commit}, exits: []int{1}})
	return out.exit == 0, err
}

// integrate merges the remote's commits into the branch, or rebases the branch on them.
func (c *pulling) integrate(ctx context.Context, to string) error {
	if c.mode == "rebase" {
		return c.rebase(ctx, to)
	}
	args := []string{"merge", "--quiet", "--no-edit", "--no-stat", "--no-verify", "--no-gpg-sign", "--no-verify-signatures", "--no-autostash", "--no-progress"}
	if c.mode == "ff_only" {
		args = append(args, "--ff-only")
	} else {
		args = append(args, "--ff", "-m", fmt.Sprintf("Merge branch '%s' of %s\n", c.branch, c.from.name))
	}
	out, err := c.run(ctx, command{args: append(args, to), writes: true, env: c.anybody(), exits: []int{1}})
	if err != nil || out.exit == 0 {
		return err
	}
	if s, err := c.lookAt(ctx, "no"); err == nil {
		if conflicts := s.conflicts(); len(conflicts) > 0 {
			return tool.Errorf(tool.Conflict, "The merge has conflicts in %s", c.namesOf(conflicts)).
				WithHint("edit these files, git_add them and git_commit, or undo the merge with git_merge and abort")
		}
	}
	return c.explain(output{stderr: out.stderr + string(out.stdout), exit: out.exit})
}

// rebase rebases the branch. If it fails, it undoes the rebase.
func (c *pulling) rebase(ctx context.Context, onto string) error {
	args := []string{"rebase", "--quiet", "--no-stat", "--no-verify", "--no-gpg-sign", "--no-autostash", "--no-autosquash", onto}
	out, err := c.run(ctx, command{args: args, writes: true, env: c.anybody(), exits: []int{1, 128}})
	if err == nil && out.exit == 0 {
		return nil
	}
	// Undo the rebase even if the call was canceled.
	ctx = context.WithoutCancel(ctx)
	var conflicts []string
	if s, err := c.lookAt(ctx, "no"); err == nil {
		conflicts = s.conflicts()
	}
	if c.inProgress() == "rebase" {
		if err := c.undoRebase(ctx); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if len(conflicts) > 0 {
		return tool.Errorf(tool.Conflict, "The rebase had conflicts in %s and was undone", c.namesOf(conflicts)).WithHint("use mode merge, which lets you resolve the conflicts")
	}
	return c.explain(output{stderr: cmp.Or(out.stderr, string(out.stdout)), exit: out.exit})
}

// undoRebase aborts the rebase in progress and restores the previous state.
func (c *pulling) undoRebase(ctx context.Context) error {
	_, err := c.run(ctx, command{args: []string{"rebase", "--abort"}, writes: true, env: c.anybody()})
	if err == nil {
		return nil
	}
	// A rebase that ended right after its start has not written everything that an abort
	// needs, and has not detached HEAD yet.
	out, failed := c.run(ctx, command{args: []string{"symbolic-ref", "--quiet", "HEAD"}, exits: []int{1}})
	if failed == nil && out.exit == 0 {
		_, err = c.run(ctx, command{args: []string{"rebase", "--quit"}, writes: true, env: c.anybody()})
	}
	return err
}
