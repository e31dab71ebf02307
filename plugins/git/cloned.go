package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// cloned is what a clone has got from its remote.
type cloned struct {
	branch, commit string // both are "" if the remote has no default branch
	files          int
	notes          []string
}

// download makes the new repository and fetches from the remote.
func (c *cloning) download(ctx context.Context, b *repository) (*cloned, error) {
	got := &cloned{branch: c.in.Branch}
	id, err := c.ask(ctx, b, got)
	if err != nil {
		return nil, err
	}
	args := []string{"init", "--quiet", "--template=", "--initial-branch=main"} // no template: it could have hooks
	if got.branch != "" {
		args[3] = "--initial-branch=" + got.branch
	}
	if len(id) == 64 {
		args = append(args, "--object-format=sha256")
	}
	if _, err := b.run(ctx, command{args: args, writes: true}); err != nil {
		return nil, err
	}
	if err := b.readConfig(ctx); err != nil {
		return nil, err
	}
	add := []string{"remote", "add"}
	specs := []string{"+refs/heads/*:" + c.from.tracking("*")}
	if c.in.Depth > 0 && id != "" {
		add = append(add, "-t", got.branch)
		specs = []string{"+refs/heads/" + got.branch + ":" + c.from.tracking(got.branch)}
	}
	if _, err := b.run(ctx, command{args: append(add, "--", c.from.name, c.from.url), writes: true}); err != nil || id == "" {
		return got, err
	}
	f := &fetching{repository: b, from: c.from, specs: specs, clones: true, depth: c.in.Depth}
	_, after, err := f.fetch(ctx)
	if err != nil {
		return nil, err
	}
	if got.commit = after[c.from.tracking(got.branch)]; got.commit == "" {
		return nil, c.noBranch()
	}
	return got, b.setUpstream(ctx, got.branch, c.from.name, got.branch)
}

// ask asks the remote for the branch, or for its default branch, and returns an object id
// of it. It returns "" if the remote has no default branch.
func (c *cloning) ask(ctx context.Context, b *repository, got *cloned) (string, error) {
	t, err := b.transfer(nil)
	if err != nil {
		return "", err
	}
	defer t.Close()
	ref := "HEAD"
	if got.branch != "" {
		if err := b.checkBranchName(ctx, got.branch); err != nil {
			return "", err
		}
		ref = "refs/heads/" + got.branch
	}
	out, err := t.runRemote(ctx, c.from, command{args: []string{"ls-remote", "--symref", "--", c.from.url, ref}})
	if err != nil {
		return "", err
	}
	id := ""
	for _, line := range out.lines() {
		value, name, _ := strings.Cut(line, "\t")
		to, symbolic := strings.CutPrefix(value, "ref: ")
		switch {
		case name != ref: // the pattern matches the ends of names
		case !symbolic:
			id = value
		case c.in.Branch == "":
			got.branch, _ = strings.CutPrefix(to, "refs/heads/")
		}
	}
	switch {
	case id == "" && c.in.Branch != "":
		return "", c.noBranch()
	case id == "":
		got.branch = ""
		return "", nil
	case got.branch == "":
		return "", tool.Errorf(tool.Failed, "The remote has no default branch").WithHint("set branch")
	case !objectID.MatchString(id):
		return "", unreadable(nil)
	}
	return id, b.checkBranchName(ctx, got.branch)
}

func (c *cloning) noBranch() *tool.Error {
	return tool.Errorf(tool.NotFound, "The remote has no branch %s", display.Name(c.in.Branch)).WithHint("leave out branch to get the default branch")
}

// maxCheckout is the maximum size of the files that a clone checks out. A small pack can
// hold much larger files, or one large file under many names, and no preview shows their
// size.
const maxCheckout = tool.GiB

// checkOut puts the branch's files into the worktree. It leaves out forbidden and protected
// files, and marks them in the index so that no commit deletes them.
func (c *cloning) checkOut(ctx context.Context, b *repository, got *cloned) error {
	var paths, submodules, away []string
	var size tool.ByteSize
	err := b.records(ctx, command{args: []string{"ls-tree", "-r", "-l", "-z", "--full-tree", got.commit}}, func(record string) {
		head, path, _ := strings.Cut(record, "\t")
		of, _ := strconv.ParseInt(head[strings.LastIndexByte(head, ' ')+1:], 10, 64) // "-", which is 0, for a submodule
		size = min(size+min(tool.ByteSize(of), maxCheckout+1), maxCheckout+1)
		switch {
		case len(paths)+len(submodules) > maxHeld:
		case strings.HasPrefix(head, "160000 "):
			submodules = append(submodules, path)
		default:
			paths = append(paths, path)
		}
	})
	switch {
	case err != nil:
		return err
	case len(paths)+len(submodules) > maxHeld:
		return tool.Errorf(tool.ResourceExhausted, "The branch has more than %d files", maxHeld).WithHint("the user can clone it with git")
	case size > maxCheckout:
		return tool.Errorf(tool.ResourceExhausted, "The files of the branch have more than %s", maxCheckout).WithHint("clone another branch; the user can clone this one with git")
	}
	keep := func(paths []string) (kept []string) {
		if c.refuseProtected(paths) == nil {
			return paths
		}
		for _, path := range paths {
			if c.refuseProtected([]string{path}) != nil {
				away = append(away, path)
			} else {
				kept = append(kept, path)
			}
		}
		return kept
	}
	written := keep(paths)
	got.files = len(written)
	written = append(written, keep(submodules)...) // as empty directories
	ref := "refs/heads/" + got.branch
	steps := []command{
		{args: []string{"update-ref", "-m", "clone", ref, got.commit, strings.Repeat("0", len(got.commit))}, env: b.anybody()},
		{args: []string{"read-tree", got.commit}},
	}
	if len(away) > 0 {
		steps = append(steps, command{args: []string{"update-index", "-z", "--skip-worktree", "--stdin"}, stdin: terminated(away)})
		got.notes = append(got.notes, "[not checked out, since programs run what they name, or they are forbidden: "+c.namesOf(away)+"]")
	}
	// Not --all: before git 2.36, it writes the marked files too.
	steps = append(steps, command{args: []string{"checkout-index", "--index", "-z", "--stdin"}, stdin: terminated(written)})
	for _, step := range steps {
		step.writes = true
		if _, err := b.run(ctx, step); err != nil {
			return err
		}
	}
	filtered, err := b.filtered(ctx, paths)
	if len(filtered) > 0 {
		got.notes = append(got.notes, "[checked out without the filter that .gitattributes sets, such as git-lfs: "+c.namesOf(filtered)+"]")
	}
	if len(submodules) > 0 {
		got.notes = append(got.notes, "["+display.Plural(len(submodules), "submodule")+" left out]")
	}
	return err
}
