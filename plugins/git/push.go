package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

type pushArgs struct {
	Path           string `json:"path,omitempty" jsonschema:"the repository, relative to the workspace" role:"path" alias:"repo" default:"."`
	Remote         string `json:"remote,omitempty" jsonschema:"the name of the remote; without it, that of the branch, else origin"`
	Branch         string `json:"branch,omitempty" jsonschema:"the branch to push; without it, the current one"`
	SetUpstream    bool   `json:"set_upstream,omitempty" jsonschema:"the branch tracks the remote's from then on" default:"false"`
	ForceWithLease bool   `json:"force_with_lease,omitempty" jsonschema:"replaces the remote's branch even if it has commits that this one lacks, but only if it is what was last fetched" default:"false"`
}

// pushing is a call of git_push. Everything that it shows is known without asking the
// remote.
type pushing struct {
	*repository
	in       pushArgs
	to       *remote
	branch   string
	target   string // the remote's branch
	commitID string
	tracked  string // what the remote's branch was when it was last seen, "" for nothing
	outgoing []Commit
	lost     []Commit // that the remote's branch loses
	diff     *preview
}

// planPush finds what a call of git_push would send, and where.
func planPush(ctx context.Context, s *access, in pushArgs) (change, error) {
	r, err := s.repository(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	c := &pushing{repository: r, in: in, branch: in.Branch}
	if c.branch == "" {
		if c.branch, err = r.currentBranch(ctx); err != nil {
			return nil, err
		}
		if c.branch == "" {
			return nil, detached("push")
		}
	}
	if err := r.checkBranchName(ctx, c.branch); err != nil {
		return nil, err
	}
	if c.commitID, err = r.commitOrNone(ctx, "refs/heads/"+c.branch); err != nil {
		return nil, err
	}
	if c.commitID == "" {
		return nil, tool.Errorf(tool.NotFound, "There is no commit on a branch %s", tool.VisibleName(c.branch)).WithHint("git_branch lists them")
	}
	if c.to, err = r.remote(in.Remote, c.branch, true); err != nil {
		return nil, err
	}
	c.target = c.branch
	if merged, ok := strings.CutPrefix(r.config.last("branch", c.branch, "merge"), "refs/heads/"); ok && r.config.last("branch", c.branch, "remote") == c.to.name {
		if c.target = merged; in.SetUpstream {
			c.target = c.branch
		}
	}
	if err := r.checkBranchName(ctx, c.target); err != nil {
		return nil, err
	}
	return c, c.look(ctx)
}

// look finds which commits go.
func (c *pushing) look(ctx context.Context) (err error) {
	if c.tracked, err = c.commitOrNone(ctx, c.to.tracking(c.target)); err != nil {
		return err
	}
	switch {
	case c.tracked == "" && c.in.ForceWithLease:
		return tool.Errorf(tool.Failed, "The branch %s of %s was never fetched, so nobody knows what would be replaced", tool.VisibleName(c.target), tool.VisibleName(c.to.name)).
			WithHint("git_fetch first, or push without force_with_lease")
	case c.tracked == c.commitID && !c.in.SetUpstream:
		return tool.Errorf(tool.Failed, "There is nothing to push: %s is at %s, as %s was when it was last fetched", tool.VisibleName(c.branch), short(c.commitID), tool.VisibleName(c.to.name+"/"+c.target)).
			WithHint("commit first, or git_fetch to see whether the remote has changed")
	}
	if c.tracked != "" {
		if c.lost, err = c.between(ctx, c.tracked, c.commitID); err != nil {
			return err
		}
		if len(c.lost) > 0 && !c.in.ForceWithLease {
			return tool.Errorf(tool.Conflict, "%s has commits that %s lacks", tool.VisibleName(c.to.name+"/"+c.target), tool.VisibleName(c.branch)).
				WithHint("git_pull first, then push again")
		}
	}
	known, err := c.known(ctx)
	if err != nil {
		return err
	}
	if c.outgoing, err = c.between(ctx, c.commitID, known...); err != nil || !c.previews {
		return err
	}
	base, err := c.base(ctx, known)
	if err != nil {
		return err
	}
	c.diff, err = c.previewOf(ctx, "diff", c.patchFlags(), []string{base, c.commitID}, nil, nil)
	return err
}

// known are commits that the remote has: what its branch was when it was last seen, else
// what all its branches were.
func (c *pushing) known(ctx context.Context) ([]string, error) {
	if c.tracked != "" {
		return []string{c.tracked}, nil
	}
	branches, _, err := c.references(ctx, "refs/remotes/"+c.to.name+"/")
	return slices.Sorted(maps.Values(branches)), err
}

// base is what the outgoing commits are compared with: what the remote's branch was, else
// the last commit that they share with the remote's other branches, else nothing.
func (c *pushing) base(ctx context.Context, known []string) (string, error) {
	switch {
	case c.tracked != "":
		return c.tracked, nil
	case len(known) == 0:
		return emptyTree(c.commitID), nil
	}
	// The best common ancestor of the commit and of all others taken together.
	args := append([]string{"merge-base", c.commitID}, known...)
	out, err := c.run(ctx, command{args: args[:min(len(args), maxNames)], exits: []int{1}})
	return cmp.Or(strings.TrimSpace(string(out.stdout)), emptyTree(c.commitID)), err
}

func (c *pushing) state() string {
	return stateOf("git_push", c.gitDir, c.to.name, c.to.url, c.branch, "refs/heads/"+c.target, c.commitID, c.tracked, fmt.Sprint(c.in.ForceWithLease, c.in.SetUpstream))
}

func (c *pushing) show(context.Context) (string, []tool.Content, error) {
	how := "Pushes"
	if c.in.ForceWithLease {
		how = "Force-pushes"
	}
	summary := fmt.Sprintf("%s %s of branch %s to %s (%s), branch %s", how, countOf(c.outgoing), tool.VisibleName(c.branch), tool.VisibleName(c.to.name), tool.VisibleName(c.to.url), tool.VisibleName(c.target))
	was := "it was not known here"
	if c.tracked != "" {
		was = "it was at " + c.tracked + " when last fetched"
	}
	about := []string{"Address: " + tool.VisibleName(c.to.url), fmt.Sprintf("refs/heads/%s becomes %s; %s", tool.VisibleName(c.target), c.commitID, was)}
	content := c.listed(about)
	content = append(content, commitsLeft("Commits that the remote's branch loses:", c.lost)...)
	content = append(content, commitsLeft("Commits that go:", c.outgoing)...)
	return summary, append(content, c.diff.content()...), nil
}

func (c *pushing) make(ctx context.Context) (tool.Result, error) {
	args := []string{"push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no", "--no-progress", "--no-thin"}
	if c.in.ForceWithLease {
		args = append(args, "--force-with-lease=refs/heads/"+c.target+":"+c.tracked)
	}
	// The object that was looked at, wherever the branch is by now.
	args = append(args, "--", c.to.url, c.commitID+":refs/heads/"+c.target)
	t, err := c.transfer(nil)
	if err != nil {
		return tool.Result{}, err
	}
	defer t.Close()
	out, err := t.runRemote(ctx, c.to, command{args: args, exits: []int{1}})
	if err != nil {
		return tool.Result{}, err
	}
	if out.exit != 0 {
		return tool.Result{}, t.explain(output{stderr: string(out.stdout) + out.stderr, exit: out.exit})
	}
	notes := c.remember(ctx)
	facts := map[string]any{"repo": c.shown, "remote": c.to.name, "url": c.to.url, "branch": c.target, "commit": c.commitID, "before": c.tracked}
	effects := []tool.Effect{{Kind: "git.pushed", Target: c.to.url + " refs/heads/" + c.target, Operation: "update"}}
	return done(facts, effects, "Pushed %s to %s: branch %s is at %s%s", countOf(c.outgoing), tool.VisibleName(c.to.name), tool.VisibleName(c.target), short(c.commitID), notes), nil
}

// remember notes here where the remote's branch is, and that the branch tracks it. It
// returns what of that has failed: the push has not.
func (c *pushing) remember(ctx context.Context) (notes string) {
	args := []string{"update-ref", "--no-deref", "-m", "update by push", c.to.tracking(c.target), c.commitID}
	_, err := c.run(ctx, command{args: args, writes: true, env: c.anybody()})
	notes = unnoted(err)
	if c.in.SetUpstream {
		notes += unnoted(c.setUpstream(ctx, c.branch, c.to.name, c.target))
	}
	return notes
}

// setUpstream notes that a branch tracks one of a remote.
func (r *repository) setUpstream(ctx context.Context, branch, remote, upstream string) error {
	for _, setting := range [][]string{{"branch." + branch + ".remote", remote}, {"branch." + branch + ".merge", "refs/heads/" + upstream}} {
		args := append([]string{"config", "--replace-all", "--"}, setting...)
		if _, err := r.run(ctx, command{args: args, writes: true}); err != nil {
			return err
		}
	}
	return nil
}

// unnoted tells what could not be noted after the rest was done.
func unnoted(err error) string {
	if err == nil {
		return ""
	}
	return "\n[it could not be noted in the repository: " + tool.AsError(err).Message + "]"
}
