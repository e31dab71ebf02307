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
	"github.com/toolhost/toolhost/sdk/tool"
)

type stashArgs struct {
	Path      string `json:"path,omitempty" jsonschema:"the repository, relative to the workspace" role:"path" alias:"repo" default:"."`
	Action    string `json:"action,omitempty" jsonschema:"push puts changes away, apply and pop bring them back (pop removes the stash), drop throws one away, list shows all" enum:"list,push,apply,pop,drop" default:"list"`
	Message   string `json:"message,omitempty" jsonschema:"with push: what the changes are"`
	Untracked bool   `json:"untracked,omitempty" jsonschema:"with push: files that git does not know, too" default:"false"`
	Stash     int    `json:"stash,omitempty" jsonschema:"with apply, pop and drop: its number in the list; 0 is the newest" default:"0"`
}

// Stashes are changes that were put away.
type Stashes struct {
	Repo    string  `json:"repo" jsonschema:"the repository's directory, relative to the workspace"`
	Stashes []Stash `json:"stashes" jsonschema:"the newest first"`
	Total   int     `json:"total"`
}

// Stash is one of them.
type Stash struct {
	Number  int    `json:"number"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Message string `json:"message"`
}

// Text implements [sdk.Texter].
func (l Stashes) Text() string {
	var b strings.Builder
	if len(l.Stashes) == 0 {
		b.WriteString("No stashes\n")
	}
	for _, s := range l.Stashes {
		fmt.Fprintf(&b, "%d %s %s: %s\n", s.Number, short(s.Commit), s.Date, oneLine(s.Message))
	}
	if more := l.Total - len(l.Stashes); more > 0 {
		fmt.Fprintf(&b, "[%d more, older]\n", more)
	}
	return b.String()
}

// listed is a call that changes nothing, of a tool that can.
type listed struct {
	tool   string
	result sdk.Texter
}

// listing makes a change of what a tool lists.
func listing(name string, result sdk.Texter) change { return &listed{name, result} }

func (l *listed) state() string { return stateOf(l.tool) }

func (l *listed) show(context.Context) (string, []tool.Content, error) {
	return "Changes nothing", nil, nil
}

func (l *listed) make(context.Context) (tool.Result, error) {
	structured, err := json.Marshal(l.result)
	if err != nil {
		return tool.Result{}, fmt.Errorf("encode the result: %w", err)
	}
	result := tool.TextResult(l.result.Text())
	result.Structured = structured
	return result, nil
}

// planStash lists stashes, or looks at what a call would do with them.
func planStash(ctx context.Context, s *access, in stashArgs) (change, error) {
	r, err := s.repository(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	if in.Action == "list" {
		list, err := r.stashes(ctx, &page{limit: maxStashes, room: r.budget - overhead})
		return listing("git_stash", list), err
	}
	if err := r.refuseLocked(); err != nil {
		return nil, err
	}
	if in.Action == "push" {
		return r.planPutAway(ctx, in)
	}
	list, err := r.stashes(ctx, &page{start: in.Stash, limit: 1})
	if err != nil {
		return nil, err
	}
	if in.Stash < 0 || len(list.Stashes) == 0 {
		return nil, tool.Errorf(tool.NotFound, "There is no stash %d", in.Stash).WithHint("git_stash with action list shows which there are")
	}
	c := &bringingBack{repository: r, action: in.Action, stash: list.Stashes[0]}
	return c, c.look(ctx)
}

// maxStashes is how many stashes are listed.
const maxStashes = 1000

// stashes lists the stashes of a page.
func (r *repository) stashes(ctx context.Context, p *page) (Stashes, error) {
	list := Stashes{Repo: r.shown, Stashes: []Stash{}}
	if there, err := r.exists(ctx, "refs/stash"); err != nil || !there {
		return list, err
	}
	var f []string
	records := porcelain.NewRecords(func(field []byte) error {
		if f = append(f, string(field)); len(f) < 4 { // the fourth is the empty one of -z
			return nil
		}
		s := Stash{Number: list.Total, Commit: f[0], Date: f[1], Message: cut(f[2])}
		list.Total++
		if p.take(sizeOf(s)) {
			list.Stashes = append(list.Stashes, s)
		}
		f = f[:0]
		return nil
	})
	args := []string{"log", "-z", "--walk-reflogs", "--first-parent", "--no-patch", "--no-color", "--format=tformat:%H%x00%cI%x00%gs%x00", "refs/stash", "--"}
	_, err := r.run(ctx, command{args: args, output: records, maxOutput: maxListed})
	if err != nil {
		return list, err
	}
	if err := records.Close(); err != nil {
		return list, unreadable(err)
	}
	return list, nil
}

// puttingAway is a call of git_stash that pushes.
type puttingAway struct {
	*repository
	in    stashArgs
	head  *state
	lost  *preview
	files []string
}

func (r *repository) planPutAway(ctx context.Context, in stashArgs) (change, error) {
	if err := checkText("message", in.Message); err != nil {
		return nil, err
	}
	c := &puttingAway{repository: r, in: in}
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
	// Git stash passes over submodules and other repositories.
	c.head.files = slices.DeleteFunc(c.head.files, func(e porcelain.Entry) bool {
		return strings.HasPrefix(e.Submodule, "S") || e.Kind == porcelain.Untracked && strings.HasSuffix(e.Path, "/")
	})
	switch conflicts := c.head.conflicts(); {
	case c.head.Commit == "":
		return nil, tool.Errorf(tool.NotFound, "There is no commit yet").WithHint("git_commit makes the first")
	case len(conflicts) > 0:
		return nil, r.unresolved(conflicts)
	case len(c.head.files) == 0:
		return nil, tool.Errorf(tool.Failed, "There is nothing to put away").WithHint("nothing has changed; with untracked, files that git does not know go, too")
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

func (c *puttingAway) state() string {
	return stateOf("git_stash push", c.gitDir, c.head.Name, c.head.Commit, c.in.Message, fmt.Sprintf("%t %x", c.in.Untracked, c.lost.sum), strings.Join(c.files, "\x00"))
}

func (c *puttingAway) show(context.Context) (string, []tool.Content, error) {
	var lines []string
	for _, e := range c.head.files {
		lines = append(lines, e.Index+e.Worktree+" "+tool.VisibleName(c.repository.show(e.Path)))
	}
	summary := fmt.Sprintf("Puts away the changes to %s in %s", plural(len(c.files), "file"), c.place())
	return summary, append(c.repository.listed(lines), c.lost.content()...), nil
}

func (c *puttingAway) make(ctx context.Context) (tool.Result, error) {
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
	return done(facts, c.changedFiles(c.files, "stash"), "Put away the changes to %s: %s\ngit_stash with action pop brings them back", plural(len(c.files), "file"), c.namesOf(c.files)), nil
}

// bringingBack is a call of git_stash that applies, pops or drops.
type bringingBack struct {
	*repository
	action string
	stash  Stash
	diff   *preview
	others *preview // files that git did not know, nil if there are none
	files  []string
}

// look finds what is in the stash.
func (c *bringingBack) look(ctx context.Context) (err error) {
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

// lookAtOthers finds the files in the stash that git did not know. They are in a
// commit of their own; git does not bring them back where others lie.
func (c *bringingBack) lookAtOthers(ctx context.Context) error {
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

func (c *bringingBack) state() string {
	return stateOf("git_stash "+c.action, c.gitDir, c.stash.Commit)
}

func (c *bringingBack) show(context.Context) (string, []tool.Content, error) {
	what := map[string]string{"apply": "Brings back", "pop": "Brings back and removes", "drop": "Throws away"}[c.action]
	summary := fmt.Sprintf("%s stash %d of %s, with changes to %s: %s", what, c.stash.Number, c.place(), plural(len(c.files), "file"), oneLine(c.stash.Message))
	shown := c.diff.content()
	if c.others != nil {
		shown = append(shown, c.others.content()...)
	}
	return summary, shown, nil
}

func (c *bringingBack) make(ctx context.Context) (tool.Result, error) {
	var effects []tool.Effect
	if c.action != "drop" {
		// By its object id: another stash may have the number by now.
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
	did := map[string]string{"apply": "Brought back", "pop": "Brought back and removed", "drop": "Threw away"}[c.action]
	facts := map[string]any{"repo": c.shown, "stash": c.stash.Commit, "files": len(c.files)}
	return done(facts, effects, "%s stash %d (%s), with changes to %s", did, c.stash.Number, c.stash.Commit, plural(len(c.files), "file")), nil
}

// drop removes the stash if it still has its number.
func (c *bringingBack) drop(ctx context.Context) error {
	name := "stash@{" + strconv.Itoa(c.stash.Number) + "}"
	if id, err := c.commit(ctx, "refs/"+name); err != nil || id != c.stash.Commit {
		return sdk.ChangedSincePreview("the stash has another number").WithCause(err)
	}
	_, err := c.run(ctx, command{args: []string{"stash", "drop", "--quiet", strconv.Itoa(c.stash.Number)}, writes: true, env: c.anybody()})
	return err
}

// notApplied says why a stash was not brought back as a whole.
func (c *bringingBack) notApplied(ctx context.Context, out output) error {
	if s, err := c.lookAt(ctx, "no"); err == nil {
		if conflicts := s.conflicts(); len(conflicts) > 0 {
			return tool.Errorf(tool.Conflict, "The stash is brought back with conflicts in %s, and kept", c.namesOf(conflicts)).
				WithHint("edit these files, then git_add them")
		}
	}
	return c.explain(out)
}
