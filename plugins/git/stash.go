package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type stashArgs struct {
	Path      string `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo" default:"."`
	Action    string `json:"action,omitempty" jsonschema:"pop also removes it" enum:"list,show,push,apply,pop,drop" default:"list"`
	Message   string `json:"message,omitempty" jsonschema:"message"`
	Untracked bool   `json:"untracked,omitempty" jsonschema:"push untracked files too" default:"false"`
	Stash     int    `json:"stash,omitempty" jsonschema:"number; 0 is the newest" default:"0"`
	sdk.Paged
}

// Stashes is the list of git_stash.
type Stashes struct {
	Repo    string  `json:"repo" jsonschema:"the repository's directory, relative to the workspace"`
	Stashes []Stash `json:"stashes" jsonschema:"newest first"`
	Total   int     `json:"total"`
}

// Stash is one stash.
type Stash struct {
	Number  int          `json:"number"`
	Commit  string       `json:"commit"`
	Date    string       `json:"date"`
	Message display.Line `json:"message"`
}

// Text implements [sdk.Texter].
func (l Stashes) Text() string {
	var b strings.Builder
	if len(l.Stashes) == 0 {
		b.WriteString("No stashes\n")
	}
	for _, s := range l.Stashes {
		fmt.Fprintf(&b, "%d %s %s: %s\n", s.Number, short(s.Commit), s.Date, s.Message)
	}
	if more := l.Total - len(l.Stashes); more > 0 {
		fmt.Fprintf(&b, "[%d older stashes not shown]\n", more)
	}
	return b.String()
}

// listed is a call that changes nothing, of a tool that can change something.
type listed struct {
	tool   string
	result sdk.Texter
}

// listing returns the change for a list.
func listing(name string, result sdk.Texter) change { return &listed{name, result} }

func (l *listed) State(context.Context) (string, error) { return stateOf(l.tool), nil }

func (l *listed) Show(context.Context) (string, []tool.Content, error) {
	return "Changes nothing", nil, nil
}

func (l *listed) Apply(context.Context) (tool.Result, error) {
	structured, err := json.Marshal(l.result)
	if err != nil {
		return tool.Result{}, fmt.Errorf("encode the result: %w", err)
	}
	result := tool.TextResult(l.result.Text())
	result.Structured = structured
	return result, nil
}

// planStash lists the stashes, or plans to change them.
func planStash(ctx context.Context, s *access, in stashArgs) (change, error) {
	r, err := s.repository(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	if in.Action == "list" {
		list, err := r.stashes(ctx, &page{limit: maxStashes, room: r.budget - overhead})
		return listing("git_stash", list), err
	}
	if in.Action != "show" {
		if err := r.refuseLocked(); err != nil {
			return nil, err
		}
	}
	if in.Action == "push" {
		return r.planPush(ctx, in)
	}
	list, err := r.stashes(ctx, &page{start: in.Stash, limit: 1})
	if err != nil {
		return nil, err
	}
	if in.Stash < 0 || len(list.Stashes) == 0 {
		return nil, tool.Errorf(tool.NotFound, "There is no stash %d", in.Stash).WithHint(stashHint)
	}
	if in.Action == "show" {
		shown, err := r.showStash(ctx, list.Stashes[0], in.Cursor)
		return listing("git_stash", shown), err
	}
	c := &unstashing{repository: r, action: in.Action, stash: list.Stashes[0]}
	return c, c.look(ctx)
}

// maxStashes is the maximum number of stashes in one result.
const maxStashes = 1000

// stashes lists the stashes of a page.
func (r *repository) stashes(ctx context.Context, p *page) (Stashes, error) {
	list := Stashes{Repo: r.shown, Stashes: []Stash{}}
	if there, err := r.exists(ctx, "refs/stash"); err != nil || !there {
		return list, err
	}
	var f []string
	args := []string{"log", "-z", "--walk-reflogs", "--first-parent", "--no-patch", "--no-color", "--format=tformat:%H%x00%cI%x00%gs%x00", "refs/stash", "--"}
	err := r.records(ctx, command{args: args}, func(field string) {
		if f = append(f, field); len(f) < 4 { // the fourth is empty because of -z
			return
		}
		s := Stash{Number: list.Total, Commit: f[0], Date: f[1], Message: display.Line(display.Cut(f[2], maxEcho))}
		list.Total++
		if p.take(sizeOf(s)) {
			list.Stashes = append(list.Stashes, s)
		}
		f = f[:0]
	})
	return list, err
}

// stashing is a call of git_stash that pushes.
type stashing struct {
	*repository
	in    stashArgs
	head  *state
	lost  *preview
	files []string
}

func (r *repository) planPush(ctx context.Context, in stashArgs) (change, error) {
	if err := checkText("message", in.Message); err != nil {
		return nil, err
	}
	c := &stashing{repository: r, in: in}
	if err := r.refuseUnseen(ctx, nil); err != nil {
		return nil, err
	}
	if err := r.refuseSymbolic(ctx, "refs/stash"); err != nil {
		return nil, err
	}
	untracked := "no"
	if in.Untracked {
		untracked = "all"
	}
	var err error
	if c.head, err = r.lookAt(ctx, untracked); err != nil {
		return nil, err
	}
	// git stash ignores submodules and nested repositories.
	c.head.files = slices.DeleteFunc(c.head.files, func(e porcelain.Entry) bool {
		return strings.HasPrefix(e.Submodule, "S") || e.Kind == porcelain.Untracked && strings.HasSuffix(e.Path, "/")
	})
	switch conflicts := c.head.conflicts(); {
	case c.head.Commit == "":
		return nil, tool.Errorf(tool.NotFound, "There is no commit yet").WithHint("create the first commit with git_commit")
	case len(conflicts) > 0:
		return nil, r.unresolved(conflicts)
	case len(c.head.files) == 0:
		return nil, tool.Errorf(tool.Failed, "There is nothing to stash").WithHint("no tracked file has changed; set untracked to include untracked files")
	}
	for _, e := range c.head.files {
		c.files = append(c.files, e.Path)
	}
	if err := r.refuseProtected(c.files); err != nil {
		return nil, err
	}
	c.lost, err = r.previewOf(ctx, "diff", r.patchFlags(), []string{c.head.Commit}, nil, nil)
	return c, err
}

func (c *stashing) State(context.Context) (string, error) {
	return stateOf("git_stash push", c.gitDir, c.head.Name, c.head.Commit, c.in.Message, fmt.Sprintf("%t %x", c.in.Untracked, c.lost.sum), strings.Join(c.files, "\x00")), nil
}

func (c *stashing) Show(context.Context) (string, []tool.Content, error) {
	var lines []string
	for _, e := range c.head.files {
		lines = append(lines, e.Index+e.Worktree+" "+c.show(e.Path).String())
	}
	summary := fmt.Sprintf("Stashes changes to %s in %s", display.Plural(len(c.files), "file"), c.place())
	return summary, append(c.listed(lines), c.lost.content()...), nil
}

func (c *stashing) Apply(ctx context.Context) (tool.Result, error) {
	args := []string{"stash", "push", "--quiet", "--no-keep-index"}
	if c.in.Untracked {
		args = append(args, "--include-untracked")
	}
	if c.in.Message != "" {
		args = append(args, "--message="+c.in.Message)
	}
	if _, err := c.run(ctx, command{args: args, writes: true, env: c.anybody()}); err != nil {
		return tool.Result{}, err
	}
	id, err := c.commit(ctx, "refs/stash")
	if err != nil {
		return tool.Result{}, err
	}
	facts := map[string]any{"repo": c.shown, "stash": id, "files": len(c.files)}
	return done(facts, c.changedFiles(c.files, "stash"), "Stashed changes to %s: %s\nrestore them with git_stash and action pop", display.Plural(len(c.files), "file"), c.namesOf(c.files)), nil
}

// unstashing is a call of git_stash that applies, pops or drops a stash.
type unstashing struct {
	*repository
	action string
	stash  Stash
	diff   *preview
	others *preview // the untracked files; nil if there are none
	files  []string
}

// look finds the changes in the stash.
func (c *unstashing) look(ctx context.Context) (err error) {
	parents := []string{c.stash.Commit + "^1", c.stash.Commit}
	if c.files, err = c.differing(ctx, parents...); err != nil {
		return err
	}
	known := c.files
	if err := c.lookAtOthers(ctx); err != nil {
		return err
	}
	if c.action != "drop" {
		if err := c.refuseProtected(c.files); err != nil {
			return err
		}
		if err := c.refuseLoss(ctx, c.stash.Commit, known); err != nil {
			return err
		}
	}
	c.diff, err = c.previewOf(ctx, "diff", c.patchFlags(), parents, nil, nil)
	return err
}

// lookAtOthers finds the untracked files in the stash. They are in a separate commit.
// Git refuses to restore them over existing files.
func (c *unstashing) lookAtOthers(ctx context.Context) error {
	id, err := c.commit(ctx, c.stash.Commit+"^3")
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	others, err := c.list(ctx, []string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", id})
	if err != nil {
		return err
	}
	c.files = slices.Concat(c.files, others)
	c.others, err = c.previewOf(ctx, "diff", c.patchFlags(), []string{emptyTree(id), id}, nil, nil)
	return err
}

func (c *unstashing) State(context.Context) (string, error) {
	return stateOf("git_stash "+c.action, c.gitDir, c.stash.Commit), nil
}

func (c *unstashing) Show(context.Context) (string, []tool.Content, error) {
	what := map[string]string{"apply": "Restores", "pop": "Restores and removes", "drop": "Deletes"}[c.action]
	summary := fmt.Sprintf("%s stash %d of %s, with changes to %s: %s", what, c.stash.Number, c.place(), display.Plural(len(c.files), "file"), c.stash.Message)
	shown := c.diff.content()
	if c.others != nil {
		shown = append(shown, c.others.content()...)
	}
	return summary, shown, nil
}

func (c *unstashing) Apply(ctx context.Context) (tool.Result, error) {
	var effects []tool.Effect
	if c.action != "drop" {
		// The object id identifies the stash; its number may have changed.
		args := []string{"stash", "apply", "--quiet", c.stash.Commit}
		out, err := c.run(ctx, command{args: args, writes: true, env: c.anybody(), exits: []int{1}})
		if err != nil {
			return tool.Result{}, err
		}
		if out.exit != 0 {
			return tool.Result{}, c.notApplied(ctx, out)
		}
		effects = c.changedFiles(c.files, "restore")
	}
	if c.action != "apply" {
		if err := c.drop(ctx); err != nil {
			return tool.Result{}, err
		}
	}
	did := map[string]string{"apply": "Restored", "pop": "Restored and removed", "drop": "Deleted"}[c.action]
	facts := map[string]any{"repo": c.shown, "stash": c.stash.Commit, "files": len(c.files)}
	return done(facts, effects, "%s stash %d (%s), with changes to %s", did, c.stash.Number, c.stash.Commit, display.Plural(len(c.files), "file")), nil
}

// drop deletes the stash if it still has the same number.
func (c *unstashing) drop(ctx context.Context) error {
	name := "stash@{" + strconv.Itoa(c.stash.Number) + "}"
	if id, err := c.commit(ctx, "refs/"+name); err != nil || id != c.stash.Commit {
		return sdk.ChangedSincePreview("the stash has another number").WithCause(err)
	}
	_, err := c.run(ctx, command{args: []string{"stash", "drop", "--quiet", strconv.Itoa(c.stash.Number)}, writes: true, env: c.anybody()})
	return err
}

// notApplied explains why a stash was not completely restored.
func (c *unstashing) notApplied(ctx context.Context, out output) error {
	if s, err := c.lookAt(ctx, "no"); err == nil {
		if conflicts := s.conflicts(); len(conflicts) > 0 {
			return tool.Errorf(tool.Conflict, "The stash was restored with conflicts in %s, and was kept", c.namesOf(conflicts)).
				WithHint("edit these files, then git_add them")
		}
	}
	return c.explain(out)
}
