package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type pushArgs struct {
	Path           string `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo" default:"."`
	Remote         string `json:"remote,omitempty" jsonschema:"remote name"`
	Branch         string `json:"branch,omitempty" jsonschema:"default: the current branch"`
	SetUpstream    bool   `json:"set_upstream,omitempty" jsonschema:"track the remote branch" default:"false"`
	ForceWithLease bool   `json:"force_with_lease,omitempty" jsonschema:"replace the remote branch unless it changed since the last fetch" default:"false"`
}

// pushing is one call of git_push. Its preview does not contact the remote.
type pushing struct {
	*repository
	in       pushArgs
	to       *remote
	branch   string
	target   string // the remote's branch
	commitID string
	tracked  string // the last known commit of the remote's branch, or ""
	outgoing []Commit
	lost     []Commit // the commits that the remote's branch loses
	diff     *preview
}

// planPush finds the commits that a call of git_push sends, and the remote.
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
		return nil, tool.Errorf(tool.NotFound, "There is no branch %s with commits", display.Name(c.branch)).WithHint("list branches with git_branch")
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
	if c.target != c.branch {
		if err := r.checkBranchName(ctx, c.target); err != nil {
			return nil, err
		}
	}
	return c, c.look(ctx)
}

// look finds the commits to send.
func (c *pushing) look(ctx context.Context) (err error) {
	if c.tracked, err = c.commitOrNone(ctx, c.to.tracking(c.target)); err != nil {
		return err
	}
	switch {
	case c.tracked == "" && c.in.ForceWithLease:
		return tool.Errorf(tool.Failed, "The branch %s of %s was never fetched, so the commits to replace are unknown", display.Name(c.target), display.Name(c.to.name)).
			WithHint("git_fetch first, or push without force_with_lease")
	case c.tracked == c.commitID && !c.in.SetUpstream:
		return tool.Errorf(tool.Failed, "There is nothing to push: %s is at %s, and so was %s at the last fetch", display.Name(c.branch), short(c.commitID), display.Name(c.to.name+"/"+c.target)).
			WithHint("commit first, or git_fetch to check whether the remote has changed")
	}
	if c.tracked != "" {
		if c.lost, err = c.between(ctx, c.tracked, c.commitID); err != nil {
			return err
		}
		if len(c.lost) > 0 && !c.in.ForceWithLease {
			return tool.Errorf(tool.Conflict, "%s has commits that %s lacks", display.Name(c.to.name+"/"+c.target), display.Name(c.branch)).
				WithHint("git_pull first, then push again")
		}
	}
	known, err := c.known(ctx)
	if err != nil {
		return err
	}
	if c.outgoing, err = c.between(ctx, c.commitID, known...); err != nil || !c.call.InPreview() {
		return err
	}
	base, err := c.base(ctx, known)
	if err != nil {
		return err
	}
	c.diff, err = c.previewOf(ctx, "diff", c.patchFlags(), []string{base, c.commitID}, nil, nil)
	return err
}

// known returns commits that the remote has: the last known commit of its branch, or
// else those of all its branches.
func (c *pushing) known(ctx context.Context) ([]string, error) {
	if c.tracked != "" {
		return []string{c.tracked}, nil
	}
	branches, _, err := c.references(ctx, "refs/remotes/"+c.to.name+"/")
	return slices.Sorted(maps.Values(branches)), err
}

// base returns the commit that the diff of the outgoing commits starts from: the last
// known commit of the remote's branch, or else the last one shared with the remote's
// other branches, or else the empty tree.
func (c *pushing) base(ctx context.Context, known []string) (string, error) {
	switch {
	case c.tracked != "":
		return c.tracked, nil
	case len(known) == 0:
		return emptyTree(c.commitID), nil
	}
	// The best common ancestor of the commit and a merge of all others.
	args := append([]string{"merge-base", c.commitID}, known...)
	out, err := c.run(ctx, command{args: args[:min(len(args), maxNames)], exits: []int{1}})
	return cmp.Or(strings.TrimSpace(string(out.stdout)), emptyTree(c.commitID)), err
}

func (c *pushing) State(context.Context) (string, error) {
	return stateOf("git_push", c.gitDir, c.to.name, c.to.url, c.branch, "refs/heads/"+c.target, c.commitID, c.tracked, fmt.Sprint(c.in.ForceWithLease, c.in.SetUpstream)), nil
}

func (c *pushing) Show(context.Context) (string, []tool.Content, error) {
	how := "Pushes"
	if c.in.ForceWithLease {
		how = "Force-pushes"
	}
	summary := fmt.Sprintf("%s %s of branch %s to %s (%s), branch %s", how, countOf(c.outgoing), display.Name(c.branch), display.Name(c.to.name), display.Name(c.to.url), display.Name(c.target))
	was := "its current commit is unknown"
	if c.tracked != "" {
		was = "it was at " + c.tracked + " at the last fetch"
	}
	about := []string{"Address: " + display.Name(c.to.url).String(), fmt.Sprintf("refs/heads/%s becomes %s; %s", display.Name(c.target), c.commitID, was)}
	content := c.listed(about)
	content = append(content, commitsLeft("Commits that the remote's branch loses:", c.lost)...)
	content = append(content, commitsLeft("Commits to push:", c.outgoing)...)
	return summary, append(content, c.diff.content()...), nil
}

func (c *pushing) Apply(ctx context.Context) (tool.Result, error) {
	args := []string{"push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no", "--no-progress", "--no-thin"}
	if c.in.ForceWithLease {
		args = append(args, "--force-with-lease=refs/heads/"+c.target+":"+c.tracked)
	}
	// The object id of the planned commit; the branch may have moved.
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
	return done(facts, effects, "Pushed %s to %s: branch %s is at %s%s", countOf(c.outgoing), display.Name(c.to.name), display.Name(c.target), short(c.commitID), notes), nil
}

// remember records the new commit of the remote's branch and the upstream in the
// repository. It returns a note if this fails; the push has succeeded.
func (c *pushing) remember(ctx context.Context) (notes string) {
	args := []string{"update-ref", "--no-deref", "-m", "update by push", c.to.tracking(c.target), c.commitID}
	_, err := c.run(ctx, command{args: args, writes: true, env: c.anybody()})
	notes = unnoted(err)
	if c.in.SetUpstream {
		notes += unnoted(c.setUpstream(ctx, c.branch, c.to.name, c.target))
	}
	return notes
}

// setUpstream makes a branch track a remote's branch.
func (r *repository) setUpstream(ctx context.Context, branch, remote, upstream string) error {
	for _, setting := range [][]string{{"branch." + branch + ".remote", remote}, {"branch." + branch + ".merge", "refs/heads/" + upstream}} {
		args := append([]string{"config", "--replace-all", "--"}, setting...)
		if _, err := r.run(ctx, command{args: args, writes: true}); err != nil {
			return err
		}
	}
	return nil
}

// unnoted returns a note that the repository could not record a change that succeeded,
// or "" if err is nil.
func unnoted(err error) string {
	if err == nil {
		return ""
	}
	return "\n[this could not be recorded in the repository: " + tool.AsError(err).Message + "]"
}
