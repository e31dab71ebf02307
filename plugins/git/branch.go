package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type branchArgs struct {
	Path    string `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo" default:"."`
	Name    string `json:"name,omitempty" jsonschema:"branch to create or list"`
	Create  bool   `json:"create,omitempty" jsonschema:"create the branch" default:"false"`
	Base    string `json:"base,omitempty" jsonschema:"start of a new branch"`
	Remotes bool   `json:"remotes,omitempty" jsonschema:"with remote branches" default:"false"`
	pageArgs
}

// Branches is the list of git_branch.
type Branches struct {
	Repo       string     `json:"repo" jsonschema:"the repository's directory, relative to the workspace"`
	Branches   []Branch   `json:"branches"`
	Total      int        `json:"total"`
	NextCursor sdk.Cursor `json:"next_cursor,omitempty"`
}

// Branch is one branch.
type Branch struct {
	Name     display.Name `json:"name"`
	Remote   bool         `json:"remote,omitempty"`
	Current  bool         `json:"current,omitempty"`
	Commit   string       `json:"commit"`
	Upstream display.Name `json:"upstream,omitempty"`
	Track    string       `json:"track,omitempty" jsonschema:"compared with its upstream: ahead N, behind N, or gone"`
	Date     string       `json:"date" jsonschema:"the date of its last commit"`
	Subject  display.Line `json:"subject" jsonschema:"the subject of its last commit"`
}

// Text implements [sdk.Texter].
func (l Branches) Text() string {
	var b strings.Builder
	if len(l.Branches) == 0 {
		b.WriteString("No branches\n")
	}
	for _, branch := range l.Branches {
		mark := " "
		if branch.Current {
			mark = "*"
		}
		fmt.Fprintf(&b, "%s %s %s %s", mark, branch.Name, short(branch.Commit), branch.Subject)
		if branch.Upstream != "" {
			fmt.Fprintf(&b, " [%s]", strings.TrimSuffix(branch.Upstream.String()+": "+branch.Track, ": "))
		}
		b.WriteByte('\n')
	}
	writeNext(&b, l.NextCursor)
	return b.String()
}

// planBranch lists the branches, or plans to create one.
func planBranch(ctx context.Context, s *access, in branchArgs) (change, error) {
	r, err := s.repository(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	switch {
	case in.Create:
		return r.planCreate(ctx, in)
	case in.Base != "":
		return nil, tool.Errorf(tool.InvalidArgument, "base is set without create").WithHint("set create to create a branch")
	}
	list, err := r.branches(ctx, in)
	return listing("git_branch", list), err
}

// branches lists the branches of one page.
func (r *repository) branches(ctx context.Context, in branchArgs) (Branches, error) {
	list := Branches{Repo: r.shown, Branches: []Branch{}}
	p := r.page(in.Limit, in.Cursor)
	patterns := []string{"refs/heads/" + in.Name}
	if in.Remotes {
		patterns = append(patterns, "refs/remotes/")
	}
	if in.Name != "" {
		if err := r.checkBranchName(ctx, in.Name); err != nil {
			return list, err
		}
	}
	const format = "%(refname)%00%(objectname)%00%(HEAD)%00%(upstream)%00%(upstream:track,nobracket)%00%(committerdate:iso8601-strict)%00%(contents:subject)%00"
	var record []string
	records := porcelain.NewRecords(func(field []byte) error {
		record = append(record, strings.TrimPrefix(string(field), "\n"))
		if len(record) < 7 {
			return nil
		}
		b := branch(record)
		record = record[:0]
		if !b.named(in.Name) {
			return nil
		}
		if p.take(sizeOf(b)) {
			list.Branches = append(list.Branches, b)
		}
		return nil
	})
	args := append([]string{"for-each-ref", "--format=" + format, "--"}, patterns...)
	if _, err := r.run(ctx, command{args: args, output: records, maxOutput: maxListed}); err != nil {
		return list, err
	}
	_, _ = records.Write([]byte{0}) // ends the line break after the last branch; always succeeds
	err := records.Close()
	if err == nil && !slices.Equal(record, []string{""}) {
		err = errors.New("the output ends within a branch")
	}
	if err != nil {
		return list, unreadable(err)
	}
	list.Total, list.NextCursor = p.seen, p.next()
	return list, nil
}

// named reports whether the branch has a name, or any name if name is "". The HEAD of a
// remote is not a branch.
func (b *Branch) named(name string) bool {
	full := string(b.Name)
	switch {
	case b.Remote && strings.HasSuffix(full, "/HEAD"):
		return false
	case b.Remote && name != "":
		return strings.HasSuffix(full, "/"+name)
	}
	return name == "" || full == name
}

func branch(f []string) Branch {
	b := Branch{Commit: f[1], Current: f[2] == "*", Upstream: shortRef(f[3]), Track: f[4], Date: f[5], Subject: display.Line(display.Cut(f[6], maxEcho))}
	b.Name = shortRef(f[0])
	b.Remote = strings.HasPrefix(f[0], "refs/remotes/")
	return b
}

// shortRef returns the short name of a branch.
func shortRef(ref string) display.Name {
	return display.Name(strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "refs/remotes/"))
}

// checkBranchName refuses a name that a branch cannot have.
func (r *repository) checkBranchName(ctx context.Context, name string) error {
	if err := checkRevision(name); err != nil || strings.HasPrefix(name, "refs/") || name == "HEAD" {
		return badBranchName(name)
	}
	out, err := r.run(ctx, command{args: []string{"check-ref-format", "refs/heads/" + name}, exits: []int{1}})
	if err == nil && out.exit != 0 {
		err = badBranchName(name)
	}
	return err
}

// refuseSymbolic refuses a symbolic reference. Writing it would write its target.
func (r *repository) refuseSymbolic(ctx context.Context, ref string) error {
	out, err := r.run(ctx, command{args: []string{"symbolic-ref", "--quiet", ref}, exits: []int{1}})
	if err == nil && out.exit == 0 {
		return isSymbolic(ref, strings.TrimSpace(string(out.stdout)))
	}
	return err
}

func isSymbolic(ref, other string) *tool.Error {
	return tool.Errorf(tool.Conflict, "The reference %s is symbolic and points to %s", display.Name(ref), display.Name(other)).
		WithHint("the user must remove it (git symbolic-ref --delete)")
}

func badBranchName(name string) *tool.Error {
	return tool.Errorf(tool.InvalidArgument, "%s is not a valid branch name", display.Name(display.Cut(name, maxEcho))).WithHint(branchNameHint)
}

// creating is a call of git_branch that creates a branch.
type creating struct {
	*repository
	name string
	at   Commit
}

func (r *repository) planCreate(ctx context.Context, in branchArgs) (change, error) {
	if in.Name == "" {
		return nil, tool.Errorf(tool.InvalidArgument, "create is set without name").WithHint("set name to the new branch")
	}
	c := &creating{repository: r, name: in.Name}
	var err error
	c.at, err = r.newBranch(ctx, in.Name, in.Base)
	return c, err
}

// newBranch returns the commit that a new branch starts at. It refuses the name of an
// existing branch.
func (r *repository) newBranch(ctx context.Context, name, base string) (Commit, error) {
	if err := r.checkBranchName(ctx, name); err != nil {
		return Commit{}, err
	}
	if base == "" {
		base = "HEAD"
	}
	if err := r.refuseSymbolic(ctx, "refs/heads/"+name); err != nil {
		return Commit{}, err
	}
	if _, err := r.exact(ctx, "refs/heads/"+name); err == nil {
		return Commit{}, tool.Errorf(tool.Conflict, "The branch %s already exists", display.Name(name)).WithHint("git_switch to it, or use another name")
	} else if !isMissing(err) {
		return Commit{}, err
	}
	id, err := r.commit(ctx, base)
	if err != nil {
		return Commit{}, err
	}
	return r.describe(ctx, id)
}

func (c *creating) State(context.Context) (string, error) {
	return stateOf("git_branch", c.gitDir, c.name, c.at.ID), nil
}

func (c *creating) Show(context.Context) (string, []tool.Content, error) {
	return fmt.Sprintf("Creates the branch %s in %s at %s: %s", display.Name(c.name), c.place(), short(c.at.ID), c.at.Subject), nil, nil
}

func (c *creating) Apply(ctx context.Context) (tool.Result, error) {
	none := strings.Repeat("0", len(c.at.ID))
	args := []string{"update-ref", "--no-deref", "-m", "branch: Created from " + c.at.ID, "refs/heads/" + c.name, c.at.ID, none}
	if _, err := c.run(ctx, command{args: args, writes: true, env: c.anybody()}); err != nil {
		return tool.Result{}, err
	}
	facts := map[string]any{"repo": c.shown, "branch": c.name, "commit": c.at.ID}
	return done(facts, c.changedFiles(nil, "create branch"), "Created the branch %s at %s", display.Name(c.name), short(c.at.ID)), nil
}

// anybody returns the environment for the identity, or for a placeholder if there is none. Use
// it where only the reflog contains the name.
func (r *repository) anybody() []string {
	who, err := r.identity()
	if err != nil {
		who = identity{"toolhost", "toolhost@localhost"}
	}
	return who.environment()
}

// currentBranch returns the current branch, or "" if HEAD is detached.
func (r *repository) currentBranch(ctx context.Context) (string, error) {
	out, err := r.run(ctx, command{args: []string{"symbolic-ref", "--quiet", "HEAD"}, exits: []int{1}})
	name, _ := strings.CutPrefix(strings.TrimSpace(string(out.stdout)), "refs/heads/")
	return name, err
}
