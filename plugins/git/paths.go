package main

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// pathOf returns a file's path relative to the worktree, or "." for the worktree. The
// file need not exist.
func (r *repository) pathOf(name string) (string, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return "", tool.Errorf(tool.InvalidArgument, "a path is empty or contains a NUL byte")
	}
	real, err := locate(r.folders, name, false)
	if err != nil {
		return "", err
	}
	return r.relative(real, name)
}

// relative makes a real path relative to the worktree. It refuses a path that is
// outside the worktree, belongs to git, or is forbidden.
func (r *repository) relative(real, name string) (string, error) {
	if !within(real, r.worktree) {
		return "", tool.Errorf(tool.InvalidArgument, "%s is not in the repository %s", display.Name(name), display.Name(r.shown)).
			WithHint("paths are relative to the workspace, not to the repository")
	}
	rel, err := filepath.Rel(r.worktree, real)
	if err != nil {
		return "", tool.Errorf(tool.InvalidArgument, "%s is not in the repository", display.Name(name)).WithCause(err)
	}
	rel = filepath.ToSlash(rel)
	if rel == ".git" || strings.HasPrefix(rel, ".git/") {
		return "", tool.Errorf(tool.InvalidArgument, "%s is part of the git directory", display.Name(name)).WithHint("name a file in the worktree")
	}
	if r.forbidden(rel) {
		return "", forbiddenPath(name)
	}
	return rel, nil
}

// pathsOf is pathOf for several files.
func (r *repository) pathsOf(names []string) ([]string, error) {
	if len(names) > maxNames {
		return nil, tool.Errorf(tool.InvalidArgument, "files has %d entries, expected at most %d", len(names), maxNames).WithHint("name directories instead")
	}
	var all []string
	for _, name := range names {
		rel, err := r.pathOf(name)
		if err != nil {
			return nil, err
		}
		all = append(all, rel)
	}
	return all, nil
}

// maxNames is the maximum number of files that a call can name.
const maxNames = 1000

// refuseMissing returns an error for the first path that does not exist in the worktree.
func (r *repository) refuseMissing(paths []string) error {
	for _, path := range paths {
		if _, err := os.Lstat(filepath.Join(r.worktree, path)); err != nil {
			return tool.Errorf(tool.NotFound, "There is no %s", r.show(path)).
				WithHint("paths are relative to the workspace; find existing files with git_status and search_files")
		}
	}
	return nil
}

// checkText refuses an argument that is too long or contains control characters.
func checkText(name, text string) error {
	if len(text) > maxText || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' }) {
		return tool.Errorf(tool.InvalidArgument, "%s is longer than %d bytes or contains control characters", name, maxText)
	}
	return nil
}

// maxText is the maximum size of a text argument in bytes.
const maxText = 4096

// show converts a path relative to the worktree to one relative to the workspace, which
// the tools of all plugins accept.
func (r *repository) show(rel string) display.Name {
	if r.shown == "." || rel == "" {
		return display.Name(rel)
	}
	shown := path.Join(r.shown, rel)
	if strings.HasSuffix(rel, "/") {
		shown += "/"
	}
	return display.Name(shown)
}

// place names the repository in a sentence.
func (r *repository) place() string {
	if r.shown == "." {
		return "the workspace"
	}
	return display.VisibleName(r.shown)
}

// prefixes returns the options that make the names in a diff relative to the workspace.
func (r *repository) prefixes() []string {
	in := "/"
	if r.shown != "." {
		in = "/" + strings.TrimPrefix(r.shown, "/") + "/"
	}
	return []string{"--src-prefix=a" + in, "--dst-prefix=b" + in}
}
