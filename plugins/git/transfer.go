package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// transfer is a temporary git directory for connections to a remote. It shares only the
// objects of the repository. The repository's configuration, even if it changes during
// the call, cannot influence where git connects, what it trusts and what it sends. In
// the repository itself, even an address could be the name of a remote with other
// settings.
type transfer struct{ repository }

// transfer creates a transfer with the given references. The caller must close it.
func (r *repository) transfer(references map[string]string) (*transfer, error) {
	dir, err := os.MkdirTemp(r.scratch, "remote-")
	if err != nil {
		return nil, noRoom(err)
	}
	t := &transfer{*r}
	t.worktree, t.gitDir, t.commonDir = dir, dir, dir
	t.objects = filepath.Join(r.commonDir, "objects")
	t.alternates = append(slices.Clone(r.alternates), t.objects)
	t.config = &config{}
	if err := t.fill(r, references); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close removes the directory.
func (t *transfer) Close() { _ = os.RemoveAll(t.gitDir) } // it is temporary

// fill writes the files of a git directory.
func (t *transfer) fill(of *repository, references map[string]string) error {
	config := "[core]\n\trepositoryFormatVersion = 0\n"
	if format := of.config.last("extensions", "", "objectformat"); format == "sha256" {
		config = "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n"
	}
	var packed strings.Builder
	for _, name := range slices.Sorted(maps.Keys(references)) {
		fmt.Fprintf(&packed, "%s %s\n", references[name], name)
	}
	err := os.Mkdir(filepath.Join(t.gitDir, "refs"), 0o700)
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/none\n", "config": config, "packed-refs": packed.String()} {
		err = errors.Join(err, os.WriteFile(filepath.Join(t.gitDir, name), []byte(text), 0o600))
	}
	if err != nil {
		return noRoom(err)
	}
	// In a shallow clone, this file marks where the history ends.
	return copyFile(filepath.Join(t.gitDir, "shallow"), filepath.Join(of.commonDir, "shallow"))
}

func noRoom(err error) *tool.Error {
	return tool.Errorf(tool.Unavailable, "A temporary file could not be written").WithHint("the disk may be full; the user can raise limits.tmp_size of the plugin's sandbox").WithCause(err)
}

// copyFile copies a file of a git directory to a new file. It does nothing if the file
// does not exist.
func copyFile(to, from string) error {
	source, err := openFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return badRepository("its %s is unreadable", filepath.Base(from)).WithCause(err)
	}
	defer source.Close()
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return noRoom(err)
	}
	_, err = io.Copy(file, source)
	info, statErr := source.Stat()
	if err = errors.Join(err, statErr, file.Close()); err != nil {
		return noRoom(err)
	}
	// Git uses the time of the index to find files that may have changed since.
	if err := os.Chtimes(to, info.ModTime(), info.ModTime()); err != nil {
		return noRoom(err)
	}
	return nil
}
