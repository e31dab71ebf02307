// Package gitrepo reports whether git, run in a directory, may start a program that a repository
// names, and which files the repository lists. It reads the repository's configuration and index as
// git finds them, within limits, and runs nothing. What it does not understand counts as a program.
//
// It works together with package gitenv, whose environment overrides what has a fixed name. What
// that overrides is not reported.
package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxConfig bounds a configuration, maxLink a file that says where another is, and
	// maxIndex the list of files.
	maxConfig = 1 << 20
	maxLink   = 8 << 10
	maxIndex  = 256 << 20
)

// Doubt returns why git may start a program of the repository that it would use in a directory; ""
// if there is none.
func Doubt(dir string) string {
	err := find(dir, func(worktree, gitDir string, _ bool) error {
		if why := inspect(worktree, gitDir); why != "" {
			return errors.New(why)
		}
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return ""
}

// find calls look with the repositories that git may use in a directory, the nearest first, up to
// the one that it certainly uses. An error of look ends it.
func find(dir string, look func(worktree, gitDir string, certain bool) error) error {
	dir, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // git cannot go there
	}
	if err != nil {
		return errors.New("the directory cannot be looked at")
	}
	for {
		gitDir, certain, err := at(dir)
		if err != nil {
			return err
		}
		if gitDir != "" {
			if err := look(dir, gitDir, certain); err != nil {
				return err
			}
		}
		parent := filepath.Dir(dir)
		if certain || parent == dir {
			return nil
		}
		dir = parent
	}
}

// at returns the git directory of the repository whose top may be the directory, "" if there is
// none, and whether git stops searching there.
func at(dir string) (gitDir string, certain bool, err error) {
	path := filepath.Join(dir, ".git")
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		if complete(dir) {
			return "", true, errors.New("it is a bare repository, or in the directory .git")
		}
		return "", false, nil
	case err != nil:
		return "", true, errors.New("its .git cannot be looked at")
	case info.IsDir():
		return path, complete(path), nil
	}
	text, err := read(path, maxLink)
	target, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if err != nil || !ok {
		return "", true, errors.New("its .git says nowhere where the repository is")
	}
	return from(dir, target), true, nil
}

// complete reports whether git would accept a directory as a git directory.
func complete(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			_, err := os.Lstat(filepath.Join(dir, "commondir"))
			return name != "HEAD" && err == nil
		}
	}
	return true
}

// inspect checks the git directory of a worktree.
func inspect(worktree, gitDir string) string {
	common := gitDir
	text, err := read(filepath.Join(gitDir, "commondir"), maxLink)
	switch {
	case err == nil:
		common = from(gitDir, strings.TrimRight(string(text), "\r\n"))
	case !missing(err):
		return "its commondir cannot be read"
	}
	for _, path := range []string{filepath.Join(common, "config"), filepath.Join(gitDir, "config.worktree"), filepath.Join(common, "config.worktree")} {
		text, err := read(path, maxConfig)
		if missing(err) {
			continue
		}
		if err != nil {
			return "its configuration cannot be read"
		}
		settings, err := parse(text)
		if err != nil {
			return fmt.Sprintf("its configuration cannot be read: %v", err)
		}
		for _, s := range settings {
			if s.key() == "core.worktree" && sameFile(from(filepath.Dir(path), s.value), worktree) {
				continue // as in a submodule
			}
			if !s.harmless() {
				return "its configuration sets " + tool.VisibleName(s.key())
			}
		}
	}
	return submodules(filepath.Join(gitDir, "index"))
}

// from returns the target of a path that is relative to a directory.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	// Not cleaned: ".." after a link leads elsewhere.
	return dir + string(filepath.Separator) + path
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// open opens a regular file. Opening anything else could block forever.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// read reads a small file.
func read(path string, most int64) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = errors.New("it is too large")
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}
