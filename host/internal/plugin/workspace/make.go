package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Make returns the directory of a user, after making it if it does not exist: with the content of
// the template, given to its owner by give, and only then under its name. The parent must exist:
// it may be a file system that is not mounted. No account but root and the host's may be able to
// write to it. nil for give keeps the host's account as owner; give is called for one directory at
// a time, so that it can choose an owner that no other directory has. When ctx ends, Make gives up
// with its cause and leaves nothing. The error is an [ErrTemplate] if the template was not copied.
func (d Dirs) Make(ctx context.Context, user string, give func(dir *os.Root) error) (dir string, err error) {
	if dir, err = d.Of(user); err != nil || !d.PerUser() {
		return dir, err
	}
	info, err := os.Lstat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return existing(dir, info, err)
	}
	if err := making.begin(ctx, dir); err != nil {
		return "", err
	}
	defer making.end(dir)
	parent, err := os.OpenRoot(d.Parent)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, parent.Close()) }()
	name := filepath.Base(dir)
	if info, err := parent.Lstat(name); !errors.Is(err, fs.ErrNotExist) { // made meanwhile
		return existing(dir, info, err)
	}
	removeUnfinished(parent)
	unfinished := unfinishedPrefix + rand.Text() // no user's name begins with a dot
	if err := parent.Mkdir(unfinished, 0o700); err != nil {
		return "", err
	}
	if err := d.finish(ctx, parent, unfinished, name, give); err != nil {
		return "", errors.Join(err, parent.RemoveAll(unfinished))
	}
	return dir, nil
}

// existing returns the path of a directory that exists already, from the answer of Lstat.
func existing(dir string, info fs.FileInfo, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case !info.IsDir(): // a link would lead out of the parent
		return "", fmt.Errorf("%s is not a directory: remove it, and the next call makes one", dir)
	}
	return dir, nil
}

// finish copies the template into a new directory, gives the directory to its owner and then its
// name.
func (d Dirs) finish(ctx context.Context, parent *os.Root, unfinished, name string, give func(dir *os.Root) error) (err error) {
	dir, err := parent.OpenRoot(unfinished)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if d.Template != "" {
		if err := copyTemplate(ctx, d.Template, dir); err != nil {
			return err
		}
	}
	giving.Lock()
	defer giving.Unlock()
	if give != nil {
		if err := give(dir); err != nil {
			return err
		}
	}
	return parent.Rename(unfinished, name)
}

// Unfinished directories are called unfinishedPrefix and a text of [rand.Text].
const (
	unfinishedPrefix = ".new-"
	randomLength     = 26
)

// leftAfter is how long an unfinished directory is unchanged before it counts as left by a host
// that was killed.
const leftAfter = time.Hour

// removeUnfinished removes what killed hosts have left. What cannot be removed is tried again the
// next time: it harms no user.
func removeUnfinished(parent *os.Root) {
	entries, err := fs.ReadDir(parent.FS(), ".")
	if err != nil {
		return
	}
	for _, e := range entries {
		random, ours := strings.CutPrefix(e.Name(), unfinishedPrefix)
		if !e.IsDir() || !ours || len(random) != randomLength {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > leftAfter {
			_ = parent.RemoveAll(e.Name())
		}
	}
}

// giving is held from the choice of a directory's owner until the directory has its name: who
// chooses next sees the owner.
var giving sync.Mutex

// making are the directories that are being made, so that processes of one user that start
// together find one directory, and other users do not wait.
var making = busy{dirs: map[string]chan struct{}{}}

// busy is a set of paths that one goroutine at a time works on.
type busy struct {
	mu   sync.Mutex               // guards dirs
	dirs map[string]chan struct{} // each is closed when the work ends
}

// begin waits until nobody works on a path. The error is the cause of ctx.
func (b *busy) begin(ctx context.Context, path string) error {
	for {
		b.mu.Lock()
		done, found := b.dirs[path]
		if !found {
			b.dirs[path] = make(chan struct{})
		}
		b.mu.Unlock()
		if !found {
			return nil
		}
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *busy) end(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.dirs[path])
	delete(b.dirs, path)
}
