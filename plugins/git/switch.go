package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type switchArgs struct {
	Path   string `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo" default:"."`
	Branch string `json:"branch" jsonschema:"branch, or commit or tag to detach at" alias:"name"`
	Create bool   `json:"create,omitempty" jsonschema:"create the branch" default:"false"`
	Base   string `json:"base,omitempty" jsonschema:"start of a new branch"`
	Detach bool   `json:"detach,omitempty" jsonschema:"without a branch" default:"false"`
}

// switching is a call of git_switch.
type switching struct {
	*repository
	head   *state
	to     string   // the target in words
	args   []string // the arguments of git switch
	target string   // the object id of the target
	files  []string // the files that change
	branch string   // the new branch, if it tracks one of a remote
	remote string   // the remote that it tracks, or ""
}

// planSwitch finds the changes that a call of git_switch makes.
func planSwitch(ctx context.Context, s *access, in switchArgs) (change, error) {
	r, err := s.unlocked(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	c := &switching{repository: r}
	if c.head, err = r.lookAt(ctx, "no"); err != nil {
		return nil, err
	}
	if conflicts := c.head.conflicts(); len(conflicts) > 0 {
		return nil, r.unresolved(conflicts)
	}
	if doing := r.inProgress(); doing != "" && doing != "bisect" {
		return nil, unfinished(doing)
	}
	if err := c.choose(ctx, in); err != nil {
		return nil, err
	}
	from := c.head.Commit
	if from == "" {
		from = emptyTree(c.target)
	}
	if from != c.target {
		if c.files, err = r.differing(ctx, from, c.target); err != nil {
			return nil, err
		}
	}
	if err := r.refuseProtected(c.files); err != nil {
		return nil, err
	}
	return c, r.refuseLoss(ctx, c.target, c.files)
}

// choose finds the target.
func (c *switching) choose(ctx context.Context, in switchArgs) error {
	if err := checkRevision(in.Branch); err != nil {
		return err
	}
	switch {
	case in.Create && in.Detach:
		return tool.Errorf(tool.InvalidArgument, "create and detach are both set").WithHint("set only one of them")
	case in.Create:
		at, err := c.newBranch(ctx, in.Branch, in.Base)
		c.to, c.target, c.args = "the new branch "+display.Name(in.Branch).String(), at.ID, []string{"--create", in.Branch, "--no-track", at.ID}
		return err
	case in.Base != "":
		return tool.Errorf(tool.InvalidArgument, "base is set without create").WithHint("set create to create a branch")
	case in.Detach:
		id, err := c.commit(ctx, in.Branch)
		c.to, c.target, c.args = "the commit "+short(id)+" (detached HEAD)", id, []string{"--detach", id}
		return err
	}
	if err := c.checkBranchName(ctx, in.Branch); err != nil {
		return err
	}
	id, err := c.exact(ctx, "refs/heads/"+in.Branch)
	if err == nil {
		c.to, c.target, c.args = "the branch "+display.Name(in.Branch).String(), id, []string{in.Branch}
		return nil
	}
	if !isMissing(err) {
		return err
	}
	return c.fromRemote(ctx, in.Branch)
}

// fromRemote finds a branch that exactly one remote has.
func (c *switching) fromRemote(ctx context.Context, name string) error {
	var found []string
	for _, remote := range c.config.subsections("remote") {
		ref := "refs/remotes/" + remote + "/" + name
		if checkRevision(ref) != nil {
			continue // git could not look up a reference of this name
		}
		id, err := c.commitOrNone(ctx, ref)
		if err != nil {
			return err
		}
		if id != "" {
			found, c.target = append(found, remote+"/"+name), id
		}
	}
	switch len(found) {
	case 1:
		c.to = fmt.Sprintf("the new branch %s, which tracks %s", display.Name(name), display.Name(found[0]))
		c.args = []string{"--create", name, "--no-track", c.target}
		c.branch, c.remote = name, strings.TrimSuffix(found[0], "/"+name)
		return nil
	case 0:
		return tool.Errorf(tool.NotFound, "There is no branch %s", display.Name(display.Cut(name, maxEcho))).
			WithHint("list branches with git_branch; set create to create one, or detach to check out a commit")
	}
	return tool.Errorf(tool.InvalidArgument, "Several remotes have a branch %s: %s", display.Name(name), display.Names(found)).
		WithHint("set create, and set base to one of these")
}

// differing lists the files that differ between two states.
func (r *repository) differing(ctx context.Context, states ...string) ([]string, error) {
	return r.names(ctx, append([]string{"diff"}, states...)...)
}

func (c *switching) State(context.Context) (string, error) {
	return stateOf("git_switch", c.gitDir, c.head.Name, c.head.Commit, c.target, c.remote, strings.Join(c.args, "\x00")), nil
}

func (c *switching) Show(context.Context) (string, []tool.Content, error) {
	summary := fmt.Sprintf("Switches %s from %s to %s at %s: %s change", c.place(), c.head.head(), c.to, short(c.target), display.Plural(len(c.files), "file"))
	var lines []string
	for _, path := range c.files {
		lines = append(lines, c.show(path).String())
	}
	content := c.listed(lines)
	if c.isSparse() {
		content = append([]tool.Content{tool.Text(sparseNote)}, content...)
	}
	return summary, content, nil
}

// sparseNote is part of the preview of a change of files in a sparse checkout.
const sparseNote = "NOT ALL IS SHOWN: the checkout is sparse; git may remove files that .git/info/sparse-checkout excludes"

// isSparse reports whether git may remove files of a commit from the worktree.
func (r *repository) isSparse() bool {
	values := r.config.all("core", "", "sparsecheckout")
	return len(values) > 0 && !slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(values[len(values)-1]))
}

func (c *switching) Apply(ctx context.Context) (tool.Result, error) {
	args := append([]string{"switch", "--no-guess", "--no-progress", "--no-recurse-submodules", "--quiet"}, c.args...)
	if _, err := c.run(ctx, command{args: args, writes: true, env: c.anybody()}); err != nil {
		return tool.Result{}, err
	}
	notes := ""
	if c.remote != "" { // git itself would guess the remote from the settings of all remotes
		notes = unnoted(c.setUpstream(ctx, c.branch, c.remote, c.branch))
	}
	facts := map[string]any{"repo": c.shown, "commit": c.target, "files": len(c.files)}
	return done(facts, c.changedFiles(c.files, "switch"), "Switched to %s at %s: %s changed%s", c.to, short(c.target), display.Plural(len(c.files), "file"), notes), nil
}
