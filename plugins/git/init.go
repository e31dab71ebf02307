package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type initArgs struct {
	Path string `json:"path" jsonschema:"directory; created if it does not exist" role:"repository" alias:"repo"`
}

// starting is a call of git_init.
type starting struct{ *repository }

// planInit finds the directory of a call of git_init.
func planInit(_ context.Context, s *access, in initArgs) (change, error) {
	r, err := s.newRepository(in.Path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(r.gitDir); err == nil {
		return nil, tool.Errorf(tool.Conflict, "%s already has a .git", display.Name(in.Path)).WithHint("git_status shows its state")
	}
	return &starting{r}, nil
}

// newRepository returns the repository that a directory can become. The directory need not
// exist.
func (s *access) newRepository(path string) (*repository, error) {
	folders, err := s.folders()
	if err != nil {
		return nil, err
	}
	dir, err := locate(folders, path, true)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, tool.Errorf(tool.Conflict, "%s is not a directory", display.Name(path)).WithHint("name a directory")
	}
	gitDir := filepath.Join(dir, ".git")
	top := slices.IndexFunc(folders, func(f folder) bool { return within(dir, f.real) })
	r := &repository{access: s, worktree: dir, gitDir: gitDir, commonDir: gitDir, folders: folders, config: &config{}}
	r.shown, r.spelled = dir, filepath.Join(folders[top].given, dir[len(folders[top].real):])
	if rel, err := filepath.Rel(folders[0].real, dir); err == nil && filepath.IsLocal(rel) {
		r.shown = filepath.ToSlash(rel)
	}
	return r, r.refuseForbidden([]string{".", ".git", ".git/config"})
}

func (c *starting) State(context.Context) (string, error) {
	return stateOf("git_init", c.worktree), nil
}

func (c *starting) Show(context.Context) (string, []tool.Content, error) {
	return fmt.Sprintf("Creates a git repository in %s, with the branch main", c.place()), nil, nil
}

func (c *starting) Apply(ctx context.Context) (tool.Result, error) {
	if err := os.MkdirAll(c.gitDir, 0o755); err != nil {
		return tool.Result{}, tool.Errorf(tool.PermissionDenied, "The directory cannot be created: %s", display.Name(c.shown)).WithHint("check the path, and that the workspace is writable").WithCause(err)
	}
	args := []string{"init", "--quiet", "--template=", "--initial-branch=main"} // no template: it could have hooks
	if _, err := c.run(ctx, command{args: args, writes: true}); err != nil {
		return tool.Result{}, err
	}
	return done(map[string]any{"repo": c.shown, "branch": "main"}, c.changedFiles(nil, "init"), "Created a git repository in %s, with the branch main", c.place()), nil
}
