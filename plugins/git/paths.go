package main

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// pathOf returns a file's path relative to the worktree, "." for that itself. It
// need not exist.
func (r *repository) pathOf(name string) (string, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return "", tool.Errorf(tool.InvalidArgument, "a path is empty or holds a NUL byte")
	}
	real, err := locate(r.folders, name, false)
	if err != nil {
		return "", err
	}
	return r.relative(real, name)
}

// relative is a real path relative to the worktree.
func (r *repository) relative(real, name string) (string, error) {
	if !within(real, r.worktree) {
		return "", tool.Errorf(tool.InvalidArgument, "%s is not in the repository %s", tool.VisibleName(name), tool.VisibleName(r.shown)).
			WithHint("paths are relative to the workspace, not to the repository")
	}
	rel, err := filepath.Rel(r.worktree, real)
	if err != nil {
		return "", tool.Errorf(tool.InvalidArgument, "%s is not in the repository", tool.VisibleName(name)).WithCause(err)
	}
	rel = filepath.ToSlash(rel)
	if rel == ".git" || strings.HasPrefix(rel, ".git/") {
		return "", tool.Errorf(tool.InvalidArgument, "%s belongs to git itself", tool.VisibleName(name)).WithHint("name a file of the repository")
	}
	if r.forbidden(rel) {
		return "", forbiddenPath(name)
	}
	return rel, nil
}

// pathsOf returns the paths of files.
func (r *repository) pathsOf(names []string) ([]string, error) {
	if len(names) > maxNames {
		return nil, tool.Errorf(tool.InvalidArgument, "there are %d files, at most %d can be named", len(names), maxNames).WithHint("name directories")
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

// maxNames is how many files a call can name.
const maxNames = 1000

// refuseMissing refuses paths that are not there, if nothing else was found of them.
func (r *repository) refuseMissing(paths []string) error {
	for _, path := range paths {
		if _, err := os.Lstat(filepath.Join(r.worktree, path)); err != nil {
			return tool.Errorf(tool.NotFound, "There is no %s", tool.VisibleName(r.show(path))).
				WithHint("paths are relative to the workspace; git_status and search_files show which there are")
		}
	}
	return nil
}

// checkText refuses a text that git cannot be given.
func checkText(name, text string) error {
	if len(text) > maxText || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' }) {
		return tool.Errorf(tool.InvalidArgument, "%s is longer than %d bytes, or holds control characters", name, maxText)
	}
	return nil
}

// maxText bounds texts among the arguments.
const maxText = 4096

// show is a path of the worktree as results show it: relative to the workspace, so
// that the tools for files take it.
func (r *repository) show(rel string) string {
	if r.shown == "." || rel == "" {
		return rel
	}
	shown := path.Join(r.shown, rel)
	if strings.HasSuffix(rel, "/") {
		shown += "/"
	}
	return shown
}

// place is the repository in a sentence.
func (r *repository) place() string {
	if r.shown == "." {
		return "the workspace"
	}
	return tool.VisibleName(r.shown)
}

// prefixes make the names in a diff relative to the workspace.
func (r *repository) prefixes() []string {
	in := "/"
	if r.shown != "." {
		in = "/" + strings.TrimPrefix(r.shown, "/") + "/"
	}
	return []string{"--src-prefix=a" + in, "--dst-prefix=b" + in}
}
