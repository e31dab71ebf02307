package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type pickArgs struct {
	Path     string   `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo" default:"."`
	Revs     []string `json:"revs,omitempty" jsonschema:"commits in the order to apply them, or ranges such as a..b" alias:"rev,commits"`
	Mainline int      `json:"mainline,omitempty" jsonschema:"for merges: number of the parent to compare with, usually 1" min:"1" max:"100"`
	Abort    bool     `json:"abort,omitempty" jsonschema:"undo the commit in conflict" default:"false"`
}

// maxPicked is the maximum number of commits in a call.
const maxPicked = 100

// picking is a call of git_cherry_pick or git_revert.
type picking struct{ *applying }

// planPick computes the commits of a call of git_cherry_pick.
func planPick(ctx context.Context, s *access, in pickArgs) (change, error) {
	return planPicking(ctx, s, in, "cherry-pick")
}

// planRevert computes the commits of a call of git_revert.
func planRevert(ctx context.Context, s *access, in pickArgs) (change, error) {
	return planPicking(ctx, s, in, "revert")
}

func planPicking(ctx context.Context, s *access, in pickArgs, doing string) (change, error) {
	if in.Abort {
		return planAbort(ctx, s, in.Path, doing)
	}
	if len(in.Revs) == 0 {
		return nil, tool.Errorf(tool.InvalidArgument, "revs is empty").WithHint("name the commits; git_log lists them")
	}
	a, err := s.beginApplying(ctx, in.Path, doing)
	if err != nil {
		return nil, err
	}
	if a.author, err = a.identity(); err != nil {
		return nil, err
	}
	c := &picking{applying: a}
	if err := c.choose(ctx, in); err != nil {
		return nil, err
	}
	if err := c.plan(ctx); err != nil {
		return nil, err
	}
	return c, c.refuseEmpty()
}

// choose finds the steps of the call.
func (c *picking) choose(ctx context.Context, in pickArgs) error {
	var ids []string
	for _, rev := range in.Revs {
		some, err := c.expand(ctx, rev)
		if err != nil {
			return err
		}
		if ids = append(ids, some...); len(ids) > maxPicked {
			return tool.Errorf(tool.InvalidArgument, "revs names more than %d commits", maxPicked).WithHint("name fewer, in several calls")
		}
	}
	all, err := c.sources(ctx, append([]string{c.head.Commit}, ids...)...)
	if err != nil {
		return err
	}
	c.from = all[0]
	var parents []string
	for _, s := range all[1:] {
		parent, err := parentOf(s, in.Mainline)
		if err != nil {
			return err
		}
		parents = append(parents, parent)
		c.steps = append(c.steps, step{source: s})
	}
	before, err := c.treesOf(ctx, parents)
	for i, tree := range before {
		c.fill(&c.steps[i], tree, in.Mainline)
	}
	return err
}

// expand returns the commits of a revision, or of a range such as a..b in the order to
// apply them.
func (c *picking) expand(ctx context.Context, rev string) ([]string, error) {
	from, dots, to := splitRange(rev)
	if dots == "" {
		id, err := c.commit(ctx, to)
		return []string{id}, err
	}
	ids, err := c.commits(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if dots != ".." {
		return nil, tool.Errorf(tool.InvalidArgument, "%s is not a range of commits to apply", display.Name(display.Cut(rev, maxEcho))).WithHint("use a..b: the commits of b that a lacks")
	}
	args := []string{"rev-list", "--topo-order", fmt.Sprintf("--max-count=%d", maxPicked+1), ids[1], "^" + ids[0], "--"}
	out, err := c.run(ctx, command{args: args})
	if err != nil {
		return nil, err
	}
	ids = out.lines()
	if len(ids) == 0 {
		return nil, tool.Errorf(tool.NotFound, "There are no commits in %s", display.Name(display.Cut(rev, maxEcho))).WithHint("git_log lists commits, also of a range")
	}
	if c.doing != "revert" {
		slices.Reverse(ids)
	}
	return ids, nil
}

// parentOf returns the parent that a commit is compared with, or "" for a first commit.
func parentOf(s source, mainline int) (string, error) {
	switch n := len(s.parents); {
	case n > 1 && mainline == 0:
		return "", tool.Errorf(tool.InvalidArgument, "%s is a merge", short(s.id)).WithHint("set mainline to the parent to compare it with: 1 is the branch that it was merged into")
	case mainline > max(n, 1):
		return "", tool.Errorf(tool.InvalidArgument, "%s has no parent %d", short(s.id), mainline).WithHint("git_show lists the parents")
	case n == 0:
		return "", nil
	}
	return s.parents[max(mainline, 1)-1], nil
}

// fill completes a step. before is the tree that its commit changed.
func (c *picking) fill(s *step, before string, mainline int) {
	if c.doing == "cherry-pick" {
		s.base, s.theirs, s.label = before, s.source.tree, short(s.id)
		s.message = s.source.message
		return
	}
	s.base, s.theirs, s.label = s.source.tree, before, "before-"+short(s.id)
	what := s.id
	if len(s.parents) > 1 {
		what += ", reversing\nchanges made to " + s.parents[mainline-1]
	}
	s.message = fmt.Sprintf("Revert \"%s\"\n\nThis reverts commit %s.\n", s.subject(), what)
}

// refuseEmpty refuses a commit whose changes the branch already has.
func (c *picking) refuseEmpty() error {
	before := c.from.tree
	for _, s := range c.steps[:c.stopped] {
		if s.tree == before {
			return tool.Errorf(tool.Conflict, "The %s of %s would change nothing: %s", c.doing, short(s.id), display.Line(s.subject())).WithHint("leave this commit out of revs")
		}
		before = s.tree
	}
	return nil
}

func (c *picking) Show(context.Context) (string, []tool.Content, error) {
	does := map[string]string{"cherry-pick": "Applies %s to %s of %s: %s", "revert": "Reverts %s on %s of %s: %s"}[c.doing]
	summary := fmt.Sprintf(does, display.Plural(len(c.steps), "commit"), c.head.head(), c.place(), c.size())
	if !c.clean() {
		summary += fmt.Sprintf("; stops at %s with conflicts in %s", short(c.steps[c.stopped].id), display.Plural(len(c.paths), "file"))
	}
	content := []tool.Content{tool.Text(strings.Join(c.order(), "\n") + "\n")}
	return summary, append(content, c.content("", nil)...), nil
}
