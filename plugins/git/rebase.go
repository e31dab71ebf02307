package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type rebaseArgs struct {
	Path     string `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo" default:"."`
	Upstream string `json:"upstream,omitempty" jsonschema:"branch or commit to rebase on" alias:"rev,branch"`
	Onto     string `json:"onto,omitempty" jsonschema:"new base, if not upstream"`
	Continue bool   `json:"continue,omitempty" jsonschema:"go on with what is staged" default:"false"`
	Abort    bool   `json:"abort,omitempty" jsonschema:"undo the rebase in progress" default:"false"`
}

// maxReplayed is the maximum number of commits that a rebase looks at.
const maxReplayed = 500

// rebasing is a call of git_rebase.
type rebasing struct {
	*applying
	upstream string   // what the call rebases on, in words
	onto     string   // its commit
	skipped  []string // lines about commits that the rebase leaves out
	lost     []Commit // other commits that the branch loses
	kept     int      // the number of commits that stay as they are
	// saved is the rebase in progress that the call continues, or nil.
	saved  *rebaseState
	staged *preview // what it commits first, if it is a preview
}

// planRebase computes the commits of a call of git_rebase. Nothing in the repository's
// configuration, such as the upstream of the branch, has a say.
func planRebase(ctx context.Context, s *access, in rebaseArgs) (change, error) {
	switch {
	case in.Continue && in.Abort:
		return nil, tool.Errorf(tool.InvalidArgument, "continue and abort are both set").WithHint("set only one of them")
	case in.Abort:
		return planAbort(ctx, s, in.Path, "rebase")
	case in.Continue:
		return planContinue(ctx, s, in.Path)
	case in.Upstream == "":
		return nil, tool.Errorf(tool.InvalidArgument, "upstream is missing").WithHint("name the branch or commit to rebase on; git_branch lists branches")
	}
	a, err := s.beginApplying(ctx, in.Path, "rebase")
	if err != nil {
		return nil, err
	}
	if a.author, err = a.identity(); err != nil {
		return nil, err
	}
	c := &rebasing{applying: a, upstream: cmp.Or(in.Onto, in.Upstream)}
	if err := c.choose(ctx, in); err != nil {
		return nil, err
	}
	switch {
	case len(c.steps) > 0:
		return c, c.replay(ctx, c.plan)
	case c.from.id == c.head.Commit:
		return listing("git_rebase", upToDate(fmt.Sprintf("Already up to date: %s is based on %s", c.head.head(), display.Name(c.upstream)))), nil
	}
	c.forward = c.from.id
	return c, c.check(ctx, c.repository)
}

// choose finds the steps of a new rebase: the commits of the branch that upstream lacks,
// without merges and without commits whose changes upstream has.
func (c *rebasing) choose(ctx context.Context, in rebaseArgs) error {
	ids, err := c.commits(ctx, in.Upstream, c.upstream)
	if err != nil {
		return err
	}
	args := []string{"rev-list", "--cherry-mark", "--right-only", "--topo-order", fmt.Sprintf("--max-count=%d", maxReplayed+1), ids[0] + "..." + c.head.Commit, "--"}
	out, err := c.run(ctx, command{args: args})
	if err != nil {
		return err
	}
	lines := out.lines() // a mark and an id
	if len(lines) > maxReplayed {
		return tool.Errorf(tool.InvalidArgument, "%s has more than %d commits that %s lacks", c.head.head(), maxReplayed, display.Name(in.Upstream)).
			WithHint("name a later upstream, and set onto to the new base")
	}
	slices.Reverse(lines)
	c.onto = ids[1]
	names := []string{c.onto}
	for _, line := range lines {
		names = append(names, line[1:])
	}
	all, err := c.sources(ctx, names...)
	if err != nil {
		return err
	}
	c.from = all[0]
	for i, s := range all[1:] {
		var why string
		switch {
		case len(s.parents) > 1:
			why = "merge"
		case lines[i][0] == '=':
			why = "upstream has its changes"
		case len(c.steps) == 0 && slices.Equal(s.parents, []string{c.from.id}):
			c.from, c.kept = s, c.kept+1
			continue
		default:
			c.steps = append(c.steps, step{source: s})
			continue
		}
		c.skipped = append(c.skipped, fmt.Sprintf("  %s %s: %s [%s]", short(s.id), display.Line(s.author), display.Line(s.subject()), why))
	}
	if ids[0] == c.onto {
		return nil
	}
	base, err := c.run(ctx, command{args: []string{"merge-base", ids[0], c.head.Commit}, exits: []int{1}})
	if err != nil {
		return err
	}
	c.lost, err = c.between(ctx, strings.TrimSpace(string(base.stdout)), c.onto)
	return err
}

// replay completes the steps and plans them. It leaves out commits whose changes the
// branch already has.
func (c *rebasing) replay(ctx context.Context, plan func(context.Context) error) error {
	var parents []string
	for _, s := range c.steps {
		parents = append(parents, strings.Join(s.parents, " ")) // there is one, or none
	}
	before, err := c.treesOf(ctx, parents)
	if err != nil {
		return err
	}
	for i, tree := range before {
		s := &c.steps[i]
		s.base, s.theirs, s.label, s.message = tree, s.source.tree, short(s.id), s.source.message
	}
	if err := plan(ctx); err != nil {
		return err
	}
	tree := c.from.tree
	for i := range c.stopped {
		s := &c.steps[i]
		s.dropped = s.tree == tree && s.base != s.theirs
		tree = s.tree
	}
	return nil
}

func (c *rebasing) State(ctx context.Context) (string, error) {
	state, err := c.applying.State(ctx)
	parts := []string{state, c.index}
	if c.saved != nil {
		parts = append(parts, c.saved.branch, c.saved.orig)
	}
	return stateOf(parts...), err
}

func (c *rebasing) Show(ctx context.Context) (string, []tool.Content, error) {
	var summary string
	switch commits := display.Plural(len(c.steps), "commit"); {
	case c.saved != nil:
		summary = fmt.Sprintf("Continues the rebase of %s of %s: %s left, %s", c.saved.before().head(), c.place(), commits, c.size())
	case c.forward != "":
		summary = fmt.Sprintf("Moves %s of %s to %s: %s", c.head.head(), c.place(), short(c.forward), c.size())
	default:
		summary = fmt.Sprintf("Rebases %s of %s on %s (%s): %s, %s", c.head.head(), c.place(), display.Name(c.upstream), short(c.onto), commits, c.size())
	}
	if !c.clean() {
		summary += fmt.Sprintf("; stops at %s with conflicts in %s", short(c.steps[c.stopped].id), display.Plural(len(c.paths), "file"))
	}
	var lines []string
	if len(c.steps) > 0 {
		lines = c.order()
	}
	if c.kept > 0 {
		lines = append(lines, fmt.Sprintf("%s before them stay as they are", display.Plural(c.kept, "commit")))
	}
	if len(c.skipped) > 0 {
		lines = append(append(lines, "Commits that are left out:"), c.skipped...)
	}
	content := append(c.listed(lines), commitsLeft("Commits that the branch loses:", c.lost)...)
	content = append(content, c.content("", nil)...)
	if c.staged != nil {
		hidden, err := c.hiddenNote(ctx, c.files)
		if err != nil {
			return "", nil, err
		}
		content = append(append(content, tool.Text("Staged changes, which the first commit gets:\n"+hidden)), c.staged.content()...)
	}
	return summary, content, nil
}

func (c *rebasing) Apply(ctx context.Context) (tool.Result, error) {
	tip, err := c.commitSteps(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	if !c.clean() {
		return tool.Result{}, c.stop(ctx, tip)
	}
	if c.saved != nil { // if the call is cut short from here on, it can only be undone
		if err := c.noteStopped(""); err != nil {
			return tool.Result{}, noRecord(err)
		}
	}
	if err := c.moveTo(ctx, cmp.Or(c.forward, c.tree), tip); err != nil {
		if c.saved != nil && ctx.Err() == nil { // git failed before it changed the index
			_ = c.noteStopped(c.saved.stopped) // the error says what failed
		}
		return tool.Result{}, err
	}
	from := c.head
	if c.saved != nil {
		from = c.saved.before()
		if err := c.finish(context.WithoutCancel(ctx), tip); err != nil {
			return tool.Result{}, err
		}
	}
	return c.moved(from, tip), nil
}
