package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/protect"
	"github.com/toolhost/toolhost/sdk/tool"
)

type cloneArgs struct {
	URL    string `json:"url" jsonschema:"address of the repository" role:"url"`
	Path   string `json:"path" jsonschema:"new or empty directory" role:"repository" alias:"directory"`
	Branch string `json:"branch,omitempty" jsonschema:"branch to check out"`
	Depth  int    `json:"depth,omitempty" jsonschema:"only the last commits of one branch" min:"1" max:"1000000"`
}

// cloning is a call of git_clone.
type cloning struct {
	*repository // the new one
	in          cloneArgs
	from        *remote
}

// planClone finds the remote and the directory of a call of git_clone.
func planClone(_ context.Context, s *access, in cloneArgs) (change, error) {
	r, err := s.newRepository(in.Path)
	if err != nil {
		return nil, err
	}
	c := &cloning{repository: r, in: in}
	if err := c.refusePlace(); err != nil {
		return nil, err
	}
	if in.Branch != "" && checkRevision(in.Branch) != nil {
		return nil, badBranchName(in.Branch)
	}
	address := in.URL
	if !filepath.IsAbs(address) && !schemeAddress.MatchString(address) && !scpAddress.MatchString(address) && !strings.HasPrefix(address, "-") {
		address = filepath.Join(r.folders[0].given, address) // relative to the workspace, like all paths
	}
	if c.from, err = r.reach("origin", address); err != nil && tool.AsError(err).Code == tool.Failed {
		err = tool.Errorf(tool.InvalidArgument, "url is not the address of a repository").WithHint("use an address such as https://example.com/team/project.git")
	}
	return c, err
}

// refusePlace refuses a directory that is not empty, that belongs to a git directory, or
// whose files editors, agents or hooks read.
func (c *cloning) refusePlace() error {
	if entries, err := os.ReadDir(c.worktree); err == nil && len(entries) > 0 {
		return c.notEmpty()
	}
	top := c.folders[slices.IndexFunc(c.folders, func(f folder) bool { return within(c.worktree, f.real) })].real
	rel := strings.TrimPrefix(c.worktree[len(top):], "/")
	inGit := slices.ContainsFunc(strings.Split(rel, "/"), func(part string) bool { return protect.Name(part) == protect.GitDir })
	for dir := c.worktree; !inGit && dir != top; dir = filepath.Dir(dir) {
		parent := filepath.Dir(dir)
		_, err := os.Lstat(filepath.Join(parent, "HEAD"))
		inGit = err == nil && isDir(filepath.Join(parent, "objects")) // a bare repository
	}
	if inGit || len(protect.Words(c.call.Files().Protect, rel)) > 0 {
		return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", display.Name(c.in.Path)).
			WithHint("editors, agents or hooks run programs that files there name; use another directory")
	}
	return nil
}

func (c *cloning) notEmpty() *tool.Error {
	return tool.Errorf(tool.Conflict, "%s is not empty", display.Name(c.in.Path)).WithHint("name a new or an empty directory")
}

func (c *cloning) State(context.Context) (string, error) {
	return stateOf("git_clone", c.worktree, c.from.url, c.in.Branch, fmt.Sprint(c.in.Depth)), nil
}

func (c *cloning) Show(context.Context) (string, []tool.Content, error) {
	branch, commits := "the default branch", "all commits"
	if c.in.Branch != "" {
		branch = "branch " + display.Name(c.in.Branch).String()
	}
	if c.in.Depth > 0 {
		commits = "only the last " + display.Plural(c.in.Depth, "commit")
	}
	summary := fmt.Sprintf("Clones %s into %s: %s, %s", display.Name(c.from.url), c.place(), branch, commits)
	return summary, c.listed([]string{"Address: " + display.Name(c.from.url).String(), "Directory: " + c.place()}), nil
}

// Apply makes the clone in a temporary directory below the new one. A call that fails or
// is canceled leaves nothing behind.
func (c *cloning) Apply(ctx context.Context) (result tool.Result, err error) {
	made, err := makeDirs(c.worktree)
	defer func() {
		if err == nil {
			return
		}
		for _, dir := range made {
			_ = os.Remove(dir) // not if others have put files there
		}
	}()
	if err != nil {
		return tool.Result{}, c.notMade(err)
	}
	temp, err := os.MkdirTemp(c.worktree, ".clone-")
	if err != nil {
		return tool.Result{}, c.notMade(err)
	}
	defer func() { _ = os.RemoveAll(temp) }() // whatever is left of it
	b := *c.repository
	b.worktree, b.gitDir = temp, filepath.Join(temp, ".git")
	b.commonDir = b.gitDir
	if err := os.MkdirAll(filepath.Join(b.gitDir, "objects"), 0o755); err != nil {
		return tool.Result{}, c.notMade(err)
	}
	got, err := c.download(ctx, &b)
	if err != nil {
		return tool.Result{}, err
	}
	if got.commit != "" {
		if err := c.checkOut(ctx, &b, got); err != nil {
			return tool.Result{}, err
		}
	}
	if err := c.settle(temp); err != nil {
		return tool.Result{}, err
	}
	// The files have moved, which the index does not know yet.
	if _, err := c.run(context.WithoutCancel(ctx), command{args: []string{"update-index", "-q", "--refresh"}, writes: true, exits: []int{1}}); err != nil {
		got.notes = append(got.notes, strings.TrimPrefix(unnoted(err), "\n"))
	}
	return c.result(got), nil
}

func (c *cloning) result(got *cloned) tool.Result {
	text := fmt.Sprintf("Cloned %s into %s", display.Name(c.from.url), c.place())
	if got.commit == "" {
		text += ": it has no commits on a default branch yet"
	} else {
		text += fmt.Sprintf(": branch %s is at %s, %s", display.Name(got.branch), short(got.commit), display.Plural(got.files, "file"))
	}
	facts := map[string]any{"repo": c.shown, "url": c.from.url, "branch": got.branch, "commit": got.commit, "files": got.files}
	return done(facts, c.changedFiles(nil, "clone"), "%s", strings.Join(append([]string{text}, got.notes...), "\n"))
}

func (c *cloning) notMade(err error) *tool.Error {
	return tool.Errorf(tool.PermissionDenied, "The directory cannot be created: %s", display.Name(c.shown)).
		WithHint("check the path, and that the workspace is writable").WithCause(err)
}

// makeDirs makes a directory and those above it. It returns the ones that did not exist,
// the deepest first.
func makeDirs(dir string) (made []string, err error) {
	for missing := dir; ; missing = filepath.Dir(missing) {
		if _, err := os.Lstat(missing); err == nil {
			break
		}
		made = append(made, missing)
	}
	return made, os.MkdirAll(dir, 0o755)
}

// settle moves the clone from its temporary directory to where it belongs, the git
// directory last. If it fails, it moves everything back.
func (c *cloning) settle(temp string) error {
	entries, err := os.ReadDir(c.worktree)
	if err != nil {
		return c.notMade(err)
	}
	if len(entries) != 1 {
		return c.notEmpty()
	}
	files, err := os.ReadDir(temp)
	if err != nil {
		return c.notMade(err)
	}
	var names []string
	for _, file := range files {
		if file.Name() != ".git" {
			names = append(names, file.Name())
		}
	}
	names = append(names, ".git")
	for i, name := range names {
		if err := os.Rename(filepath.Join(temp, name), filepath.Join(c.worktree, name)); err != nil {
			for _, moved := range names[:i] {
				_ = os.Rename(filepath.Join(c.worktree, moved), filepath.Join(temp, moved))
			}
			return c.notMade(err)
		}
	}
	return nil
}
