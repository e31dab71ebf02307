package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// privateIndex is a temporary index. In a preview it also has its own directory for new
// objects, so that the repository does not change.
type privateIndex struct {
	r   *repository
	dir string
	env []string
}

// newIndex creates an empty privateIndex. The caller must close it.
func (r *repository) newIndex() (*privateIndex, error) { return r.newIndexWith("") }

// newIndexWith is newIndex with the directory for new objects in a preview; "" is a new
// one.
func (r *repository) newIndexWith(objects string) (*privateIndex, error) {
	dir, err := os.MkdirTemp(r.scratch, "index-")
	if err != nil {
		return nil, noRoom(err)
	}
	x := &privateIndex{r: r, dir: dir, env: []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}}
	if r.call.InPreview() {
		if objects == "" {
			objects = filepath.Join(dir, "objects")
			if err := os.Mkdir(objects, 0o700); err != nil {
				x.Close()
				return nil, noRoom(err)
			}
		}
		others := filepath.Join(r.commonDir, "objects")
		x.env = append(x.env, "GIT_OBJECT_DIRECTORY="+objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quotedDir(others))
	}
	return x, nil
}

// quotedDir quotes a directory for GIT_ALTERNATE_OBJECT_DIRECTORIES: in quotes, a colon
// does not end a path.
func quotedDir(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// Close removes the index.
func (x *privateIndex) Close() { _ = os.RemoveAll(x.dir) } // it is temporary

// copy copies the repository's index, which does not exist if nothing was ever staged.
func (x *privateIndex) copy() error {
	return copyFile(filepath.Join(x.dir, "index"), filepath.Join(x.r.gitDir, "index"))
}

// run runs git with this index.
func (x *privateIndex) run(ctx context.Context, c command) (output, error) {
	return x.r.run(ctx, x.with(c))
}

// with returns the command with this index.
func (x *privateIndex) with(c command) command {
	c.env = append(c.env, x.env...)
	c.writes = !x.r.call.InPreview()
	return c
}

// add adds the files as they are now, and removes the files that no longer exist.
func (x *privateIndex) add(ctx context.Context, paths []string) error {
	_, err := x.run(ctx, updateIndex(paths))
	return err
}

// tree writes the index as a tree and returns its object id.
func (x *privateIndex) tree(ctx context.Context) (string, error) {
	out, err := x.run(ctx, command{args: []string{"write-tree"}})
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(out.stdout)), nil
}

// updateIndex returns the command that adds files to an index as they are now. It is
// not git add, which would look into submodules.
func updateIndex(paths []string) command {
	return command{
		args: []string{"update-index", "--add", "--remove", "-z", "--stdin"}, stdin: terminated(paths), writes: true,
	}
}

// terminated returns names for an input with -z.
func terminated(names []string) []byte { return []byte(strings.Join(names, "\x00") + "\x00") }

// unlocked opens the repository that contains name, to change it. It returns an error if
// another process holds the lock of the index, or was killed and left it behind.
func (s *access) unlocked(ctx context.Context, name string) (*repository, error) {
	r, err := s.repository(ctx, name)
	if err != nil {
		return nil, err
	}
	return r, r.refuseLocked()
}

// refuseLocked returns an error if the index is locked.
func (r *repository) refuseLocked() error {
	if _, err := os.Lstat(filepath.Join(r.gitDir, "index.lock")); err == nil {
		return tool.Errorf(tool.Conflict, "Another git process is changing the repository, or was killed and left index.lock behind").
			WithHint("%s", strings.ReplaceAll(lockedHint, "$1", "index.lock"))
	}
	return nil
}
