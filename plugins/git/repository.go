package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// repository is a worktree with its git directory, both in the workspace. Its paths
// contain no symbolic links, except for spelled.
type repository struct {
	*access
	// worktree contains the files, gitDir the data of this worktree, and commonDir the
	// data that all worktrees share. gitDir and commonDir are usually the same.
	worktree, gitDir, commonDir string
	// shown is the worktree in results: relative to the workspace, or "." if it is the
	// workspace.
	shown string
	// spelled is the worktree with the workspace's spelling of its folder, which can
	// contain symbolic links.
	spelled string
	// focus is the path that the call names, relative to the worktree, or "." for the
	// worktree.
	focus string
	// folders are the workspace's folders at the start of the call.
	folders []folder
	// alternates are additional object directories, also in the workspace.
	alternates []string
	// objects is the object directory, or "" if it is in commonDir.
	objects string
	// config is the repository's configuration.
	config *config
	// secret is the secret that git got for a remote, and secretName its name. Errors
	// never contain the secret.
	secret, secretName string
}

// folder is a folder of the workspace: its path in the call and its real path.
type folder struct{ given, real string }

func (s *access) folders() ([]folder, error) {
	var all []folder
	for _, given := range s.call.Roots() {
		real, err := filepath.EvalSymlinks(given)
		if err != nil {
			return nil, tool.Errorf(tool.Unavailable, "The workspace cannot be opened").WithCause(err)
		}
		all = append(all, folder{filepath.Clean(given), real})
	}
	if len(all) == 0 {
		return nil, tool.Errorf(tool.Unavailable, "There is no workspace")
	}
	return all, nil
}

// locate returns the real path of a name in the workspace. The file need not exist. If
// it is a symbolic link, locate follows it only if follow is true.
func locate(folders []folder, name string, follow bool) (string, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(folders[0].given, path)
	}
	path = filepath.Clean(path)
	real, err := realPath(path, follow)
	if err != nil {
		return "", tool.Errorf(tool.NotFound, "File not found: %s", display.Name(name)).WithCause(err)
	}
	if !slices.ContainsFunc(folders, func(f folder) bool { return within(real, f.real) }) {
		return "", notAllowed(name)
	}
	return real, nil
}

func notAllowed(name string) *tool.Error {
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", display.Name(name)).
		WithHint("the path is outside the workspace; use a path in the workspace")
}

// realPath resolves symbolic links in the part of a path that exists.
func realPath(path string, follow bool) (string, error) {
	if follow {
		if real, err := filepath.EvalSymlinks(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return real, err
		}
	}
	dir, base := filepath.Split(path)
	if base == "" {
		return path, nil
	}
	dir = filepath.Clean(dir)
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		real, err = realPath(dir, false)
	}
	return filepath.Join(real, base), err
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// open finds the repository that contains the file or directory name.
func (s *access) open(name string) (*repository, error) {
	folders, err := s.folders()
	if err != nil {
		return nil, err
	}
	start, err := locate(folders, name, true)
	if err != nil {
		return nil, err
	}
	top := slices.IndexFunc(folders, func(f folder) bool { return within(start, f.real) })
	for dir := start; ; dir = filepath.Dir(dir) {
		gitDir, err := gitDirOf(dir)
		if err != nil {
			return nil, err
		}
		if gitDir != "" {
			r, err := s.openAt(folders, dir, gitDir)
			if err != nil {
				return nil, err
			}
			return r, r.look(name, start)
		}
		if dir == folders[top].real {
			return nil, tool.Errorf(tool.NotFound, "Not a git repository: %s", display.Name(name)).
				WithHint("name a directory that contains .git, or a file below it; the repository must be in the workspace")
		}
	}
}

// look sets the focus to the file or directory name. If name is a symbolic link in the
// repository, the focus is the link, otherwise its target.
func (r *repository) look(name, real string) error {
	itself, err := locate(r.folders, name, false)
	if err != nil || !within(itself, r.worktree) {
		itself = real
	}
	r.focus, err = r.relative(itself, name)
	return err
}

// chosen returns the paths that a call applies to: files, or else the focus. It returns
// none if the call applies to the whole repository.
func (r *repository) chosen(files []string) ([]string, error) {
	if len(files) > 0 {
		return r.pathsOf(files)
	}
	if r.focus == "." {
		return nil, nil
	}
	return []string{r.focus}, nil
}

// maxLink limits the files that contain the path of a git directory.
const maxLink = 8 << 10

// gitDirOf returns the path that .git in a directory leads to, or "" if there is none.
func gitDirOf(dir string) (string, error) {
	path := filepath.Join(dir, ".git")
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err != nil && !isDir(dir):
		return "", nil
	case err != nil:
		return "", badRepository("its .git is unreadable").WithCause(err)
	case info.IsDir():
		return path, nil
	case !info.Mode().IsRegular():
		return "", badRepository("its .git is a %s", roots.Kind(info.Mode()))
	}
	text, err := readSmall(path)
	target, ok := strings.CutPrefix(text, "gitdir: ")
	if err != nil || !ok || target == "" {
		return "", badRepository("its .git file does not name a git directory").WithCause(err)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(dir, target)
	}
	return target, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func badRepository(format string, args ...any) *tool.Error {
	return tool.Errorf(tool.Failed, "The git repository cannot be used: "+format, args...).WithHint("the user must repair or recreate it")
}

// readSmall reads a small file, without the line break at its end.
func readSmall(path string) (string, error) {
	f, err := openFile(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLink))
	return string(bytes.TrimRight(text, "\r\n")), err
}

// openFile opens a regular file of a git directory for reading. It never blocks, unlike
// opening a named pipe.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is a %s", roots.Kind(info.Mode()))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openAt opens the repository with these directories. It refuses a repository that is
// partly outside the workspace.
func (s *access) openAt(folders []folder, worktree, gitDir string) (*repository, error) {
	r := &repository{access: s, worktree: worktree, folders: folders}
	var err error
	if r.gitDir, err = r.inside(gitDir, "its git directory"); err != nil {
		return nil, err
	}
	r.commonDir = r.gitDir
	common, err := readSmall(filepath.Join(r.gitDir, "commondir"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, badRepository("its commondir is unreadable").WithCause(err)
	}
	if err == nil {
		if !filepath.IsAbs(common) {
			common = filepath.Join(r.gitDir, common)
		}
		if r.commonDir, err = r.inside(common, "the repository that its worktree belongs to"); err != nil {
			return nil, err
		}
	}
	for _, part := range []string{"objects", "refs", "config", "HEAD", "index", "info", "logs"} {
		for _, dir := range []string{r.gitDir, r.commonDir} {
			if err := r.noWayOut(filepath.Join(dir, part)); err != nil {
				return nil, err
			}
		}
	}
	if err := r.checkAlternates(filepath.Join(r.commonDir, "objects"), 0); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(folders, func(f folder) bool { return within(worktree, f.real) })
	r.spelled = filepath.Join(folders[i].given, strings.TrimPrefix(worktree, folders[i].real))
	r.shown = r.spelled
	if rel, err := filepath.Rel(folders[0].real, worktree); err == nil && filepath.IsLocal(rel) {
		r.shown = filepath.ToSlash(rel)
	}
	return r, nil
}

// inside returns the real path of a directory of the repository, which must be in the
// workspace.
func (r *repository) inside(dir, what string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", badRepository("%s does not exist", what).WithCause(err)
	}
	if !slices.ContainsFunc(r.folders, func(f folder) bool { return within(real, f.real) }) {
		return "", tool.Errorf(tool.PermissionDenied, "The git repository cannot be used: %s is outside the workspace", what).
			WithHint("this is a linked worktree or a submodule, or .git is a link; use a repository that is completely in the workspace")
	}
	return real, nil
}

// noWayOut refuses a part of the repository that is a symbolic link out of the workspace.
func (r *repository) noWayOut(path string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		_, err := r.inside(path, "a part of its git directory")
		return err
	}
	return nil // git reports missing parts
}

// maxAlternates is how deeply object directories may refer to others. Git has the same
// limit.
const maxAlternates = 5

// checkAlternates refuses object directories outside the workspace, whose content a
// call could show.
func (r *repository) checkAlternates(objects string, depth int) error {
	f, err := openFile(filepath.Join(objects, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return badRepository("its list of alternate object directories is unreadable").WithCause(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLink+1))
	if err != nil || len(text) > maxLink || depth == maxAlternates {
		return badRepository("it has too many alternate object directories").WithCause(err)
	}
	for line := range strings.Lines(string(text)) {
		dir := strings.TrimRight(line, "\n")
		if dir == "" || strings.HasPrefix(dir, "#") {
			continue
		}
		if strings.HasPrefix(dir, `"`) {
			return badRepository("an alternate object directory has a quoted name")
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(objects, dir)
		}
		real, err := r.inside(dir, "an alternate object directory")
		if err != nil {
			return err
		}
		r.alternates = append(r.alternates, real)
		if err := r.checkAlternates(real, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// repository opens the repository that contains name, and reads its configuration.
func (s *access) repository(ctx context.Context, name string) (*repository, error) {
	r, err := s.open(name)
	if err != nil {
		return nil, err
	}
	return r, r.readConfig(ctx)
}

// inProgress returns the name of the git operation that is unfinished, or "".
func (r *repository) inProgress() string {
	for _, state := range []struct{ file, doing string }{
		{"rebase-merge", "rebase"},
		{"rebase-apply", "rebase"},
		{"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"},
		{"BISECT_LOG", "bisect"},
	} {
		if _, err := os.Lstat(filepath.Join(r.gitDir, state.file)); err == nil {
			return state.doing
		}
	}
	return ""
}
