package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// step is a commit that a call applies to the current branch.
type step struct {
	source
	base, theirs string // the trees between which the applied changes lie
	label        string // the name of theirs in conflict markers
	// The new commit: its message, its second parent or "", and its tree once it is
	// planned.
	message, merged, tree string
	// dropped is true if a rebase leaves the commit out: the branch has its changes.
	dropped bool
}

// applying is a planned change of the current branch by other commits: a merge, a
// cherry-pick, a revert or a rebase. Planning computes the resulting trees, and the call
// then makes exactly these.
type applying struct {
	*repository
	doing  string // the operation, as [repository.inProgress] calls it
	head   *state
	from   source // the commit that the first step is applied to
	author identity
	steps  []step
	// forward is the commit that the branch moves to without a new commit, or "".
	forward string
	// index is the tree of the index if it contains a resolved conflict, or "" if the index
	// equals HEAD.
	index string

	tree string // the tree of the last step, with conflict markers if it has conflicts
	// stopped is the step with conflicts, or len(steps) if there is none, and conflict its
	// result.
	stopped  int
	conflict merged
	letters  map[string]string // the letters of the files in conflict
	paths    []string          // the files in conflict
	changes  *porcelain.Changes
	files    []string // the files that change, those in conflict included
}

// beginApplying opens the repository to change the current branch by other commits.
func (s *access) beginApplying(ctx context.Context, path, doing string) (*applying, error) {
	r, err := s.unlocked(ctx, path)
	if err != nil {
		return nil, err
	}
	c := &applying{repository: r, doing: doing}
	if c.head, err = r.lookAt(ctx, "no"); err != nil {
		return nil, err
	}
	switch conflicts, doing := c.head.conflicts(), r.inProgress(); {
	case c.head.Commit == "":
		return nil, tool.Errorf(tool.NotFound, "There is no commit yet").WithHint("create the first commit with git_commit")
	case doing != "" && doing != "bisect":
		return nil, unfinished(doing)
	case len(conflicts) > 0:
		return nil, r.unresolved(conflicts)
	}
	return c, nil
}

// treesOf returns the trees of commits, and the empty tree for "".
func (c *applying) treesOf(ctx context.Context, commits []string) ([]string, error) {
	ids := slices.DeleteFunc(slices.Clone(commits), func(id string) bool { return id == "" })
	known, err := c.sources(ctx, append(ids, c.head.Commit)...)
	if err != nil {
		return nil, err
	}
	var trees []string
	for _, id := range commits {
		tree := emptyTree(c.head.Commit)
		if id != "" {
			tree, known = known[0].tree, known[1:]
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

// plan computes the trees of all steps, and refuses a change that would lose or change
// files that it must not.
func (c *applying) plan(ctx context.Context) error {
	m, err := c.merger()
	if err != nil {
		return err
	}
	defer m.Close()
	return c.planIn(ctx, m)
}

// planIn is plan with a merger.
func (c *applying) planIn(ctx context.Context, m *merger) error {
	c.tree, c.stopped = c.from.tree, len(c.steps)
	for i := range c.steps {
		got, err := m.step(ctx, c, &c.steps[i])
		if err != nil {
			return err
		}
		c.tree = got.tree
		if !got.clean {
			c.stopped, c.conflict = i, got
			c.letters, c.paths = got.conflicts()
			break
		}
		c.steps[i].tree = got.tree
	}
	return c.check(ctx, m.view(c.repository))
}

// step computes the tree of one step.
func (m *merger) step(ctx context.Context, c *applying, s *step) (merged, error) {
	switch {
	case s.tree != "": // it is resolved
		return merged{tree: s.tree, clean: true}, nil
	case s.merged != "":
		return m.merge(ctx, c.from.id, s.merged, s.label)
	}
	return m.apply(ctx, c.tree, s.base, s.theirs, s.label)
}

// check finds the files that change. It refuses to change protected files, and files with
// changes that are not committed.
func (c *applying) check(ctx context.Context, view *repository) error {
	c.changes = porcelain.NewChanges(0)
	// Not diff-tree, which takes four times as long.
	list := slices.Concat([]string{"diff"}, listFlags(), []string{c.head.Commit, cmp.Or(c.forward, c.tree), "--"})
	if err := view.read(ctx, command{args: list}, c.changes); err != nil {
		return err
	}
	if c.changes.Total > maxHeld {
		return tool.Errorf(tool.ResourceExhausted, "More than %d files would change", maxHeld)
	}
	c.files = slices.Clone(c.paths)
	added := false
	for _, f := range c.changes.Files {
		c.files = append(c.files, f.Path)
		added = added || f.Status != "M" && f.Status != "D"
		if f.Status == "R" {
			c.files = append(c.files, f.From)
		}
	}
	if c.index != "" { // the files move from the index, which can lack what HEAD has
		moved, err := view.names(ctx, "diff", c.index, c.tree)
		if err != nil {
			return err
		}
		c.files, added = append(c.files, moved...), true
	}
	slices.Sort(c.files)
	c.files = slices.Compact(c.files)
	if err := c.refuseProtected(c.files); err != nil {
		return err
	}
	if err := c.refuseUncommitted(); err != nil {
		return err
	}
	if err := c.refuseUnseen(ctx, c.files); err != nil {
		return err
	}
	if !added { // no untracked file can be in the way
		return nil
	}
	return view.refuseLoss(ctx, cmp.Or(c.forward, c.tree), c.files)
}

// refuseUncommitted refuses to overwrite changes that are not committed, and to put
// staged changes into the commits.
func (c *applying) refuseUncommitted() error {
	var lost, stagedFiles []string
	for _, e := range c.head.files {
		if c.index != "" && e.Worktree == "." {
			continue // the resolved conflict
		}
		if _, changes := slices.BinarySearch(c.files, e.Path); changes {
			lost = append(lost, e.Path)
		} else if e.Index != "." && c.forward == "" && c.index == "" {
			stagedFiles = append(stagedFiles, e.Path)
		}
	}
	switch {
	case len(lost) > 0 && c.index != "":
		return tool.Errorf(tool.Conflict, "Changes are not staged: %s", c.namesOf(lost)).WithHint("git_add these files, or git_restore them")
	case len(lost) > 0:
		return tool.Errorf(tool.Conflict, "Uncommitted changes would be overwritten: %s", c.namesOf(lost)).
			WithHint("commit, stash or restore these files first")
	case len(stagedFiles) > 0:
		return tool.Errorf(tool.Conflict, "There are staged changes: %s", c.namesOf(stagedFiles)).
			WithHint("commit, stash or unstage them first")
	}
	return nil
}

// clean reports whether there are no conflicts.
func (c *applying) clean() bool { return c.stopped == len(c.steps) }

func (c *applying) State(context.Context) (string, error) {
	parts := []string{"git_" + c.doing, c.gitDir, c.head.Name, c.head.Commit, c.from.id, c.forward, c.tree, c.author.name, c.author.email}
	for _, s := range c.steps {
		parts = append(parts, s.id, s.tree, s.message)
	}
	for _, path := range c.paths {
		parts = append(parts, c.letters[path], path)
	}
	return stateOf(parts...), nil
}

// content shows the commits, the files that change and those in conflict.
func (c *applying) content(title string, commits []Commit) []tool.Content {
	var conflicts []string
	if len(c.paths) > 0 {
		conflicts = append(conflicts, "Conflicts, which stay in the files:")
	}
	for _, path := range c.paths {
		conflicts = append(conflicts, "  "+c.letters[path]+" "+c.show(path).String())
	}
	var b strings.Builder
	var files []FileDiff
	for _, f := range c.changes.Files {
		files = append(files, c.fileDiff(f))
	}
	writeFiles(&b, files, c.changes.Total, c.changes.Added, c.changes.Deleted)
	content := slices.Concat(commitsLeft(title, commits), c.listed(conflicts), c.listed(strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")))
	if c.isSparse() {
		content = append([]tool.Content{tool.Text(sparseNote)}, content...)
	}
	return content
}

// size describes the change in numbers.
func (c *applying) size() string {
	return fmt.Sprintf("%s, +%d -%d", display.Plural(c.changes.Total, "file"), c.changes.Added, c.changes.Deleted)
}

// order lists the steps for a preview, in the order in which they are made.
func (c *applying) order() []string {
	lines := []string{fmt.Sprintf("Committer: %s <%s>", display.Line(c.author.name), display.Line(c.author.email)), "Commits in this order:"}
	for i, s := range c.steps {
		line := fmt.Sprintf("  %s %s: %s", short(s.id), display.Line(s.source.author), display.Line(s.subject()))
		switch {
		case s.dropped:
			line += " [left out: changes nothing]"
		case i == c.stopped:
			line += " [conflict: the call stops here]"
		case i > c.stopped:
			line += " [not applied]"
		}
		lines = append(lines, line)
	}
	return lines
}

// Apply makes the commits and updates the files.
func (c *applying) Apply(ctx context.Context) (tool.Result, error) {
	tip, err := c.commitSteps(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	if !c.clean() {
		return tool.Result{}, c.leave(ctx, tip)
	}
	if err := c.moveTo(ctx, cmp.Or(c.forward, c.tree), tip); err != nil {
		return tool.Result{}, err
	}
	return c.moved(c.head, tip), nil
}

// moved returns the result of a branch that has moved to tip.
func (c *applying) moved(from *state, tip string) tool.Result {
	text := fmt.Sprintf("%s is now at %s: %s\nIt was at %s", from.head(), short(tip), c.size(), from.Commit)
	facts := map[string]any{
		"repo": c.shown, "commit": tip, "before": from.Commit, "branch": from.Name,
		"files": c.changes.Total, "added": c.changes.Added, "deleted": c.changes.Deleted,
	}
	return done(facts, c.changedFiles(c.files, c.doing), "%s%s", strings.ToUpper(text[:1]), text[1:])
}

// commitSteps makes the commits of the steps before the conflict, and returns the last
// one.
func (c *applying) commitSteps(ctx context.Context) (tip string, err error) {
	tip = cmp.Or(c.forward, c.from.id)
	for i := range c.stopped {
		if c.steps[i].dropped {
			continue
		}
		if tip, err = c.create(ctx, &c.steps[i], tip); err != nil {
			return "", err
		}
	}
	return tip, nil
}

// create makes the commit of a step.
func (c *applying) create(ctx context.Context, s *step, parent string) (string, error) {
	args := []string{"commit-tree", "--no-gpg-sign", s.tree, "-p", parent}
	if s.merged != "" {
		args = append(args, "-p", s.merged)
	}
	env := c.author.environment()
	if c.doing == "cherry-pick" || c.doing == "rebase" {
		env = c.author.authored(&s.source)
	}
	out, err := c.run(ctx, command{args: args, stdin: []byte(s.message), env: env, writes: true})
	return strings.TrimSpace(string(out.stdout)), err
}

// moveTo changes index and files to the tree, and the branch to the commit.
func (c *applying) moveTo(ctx context.Context, tree, tip string) error {
	if err := c.moveFiles(ctx, tree); err != nil {
		return err
	}
	return c.follow(ctx, tip)
}

// follow moves the branch to the commit after the files have changed, even if the call is canceled.
func (c *applying) follow(ctx context.Context, tip string) error {
	if tip == c.head.Commit {
		return nil
	}
	return c.moveHead(context.WithoutCancel(ctx), c.head, tip, c.doing)
}

// moveFiles changes index and files to the tree.
func (c *applying) moveFiles(ctx context.Context, tree string) error {
	if _, err := c.run(ctx, command{args: []string{"update-index", "-q", "--refresh"}, writes: true, exits: []int{1}}); err != nil {
		return err
	}
	args := []string{"read-tree", "-m", "-u", "--no-recurse-submodules", cmp.Or(c.index, c.head.Commit), tree}
	_, err := c.run(ctx, command{args: args, writes: true})
	return err
}

// leave leaves the conflicts to the user, and returns the error that names them. The index marks
// them before the branch moves: if the call is cut short between, no commit has the conflict markers.
func (c *applying) leave(ctx context.Context, tip string) error {
	if err := c.moveFiles(ctx, c.tree); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // the files have changed
	if err := c.mark(ctx); err != nil {
		return err
	}
	if err := c.follow(ctx, tip); err != nil {
		return err
	}
	s := c.steps[c.stopped]
	if err := c.note(c.doing, cmp.Or(s.merged, s.id), s.message); err != nil {
		return err
	}
	hint := fmt.Sprintf("edit these files, git_add them and git_commit, or undo the %s with git_%s and abort", c.doing, strings.ReplaceAll(c.doing, "-", "_"))
	if rest := c.steps[c.stopped+1:]; len(rest) > 0 {
		var ids []string
		for _, s := range rest {
			ids = append(ids, short(s.id))
		}
		hint += "; then call it again with the revs " + strings.Join(ids, " ")
	}
	return tool.Errorf(tool.Conflict, "%s", c.inConflict()).WithHint("%s", hint)
}

// mark marks the files in conflict in the index.
func (c *applying) mark(ctx context.Context) error {
	if len(c.conflict.stages) == 0 {
		return nil
	}
	_, err := c.run(ctx, command{args: []string{"update-index", "-z", "--index-info"}, stdin: c.conflict.index(), writes: true})
	return err
}

// inConflict says which files are in conflict, and where the call has stopped.
func (c *applying) inConflict() string {
	text := fmt.Sprintf("The %s has conflicts in %s", c.doing, display.Plural(len(c.paths), "file"))
	if len(c.paths) > 0 {
		text += ": " + c.namesOf(c.paths)
	}
	if c.doing == "merge" {
		return text
	}
	return fmt.Sprintf("%s; it stopped at %s, %d of %d commits are done", text, short(c.steps[c.stopped].id), c.stopped, len(c.steps))
}
