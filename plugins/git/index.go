package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// privateIndex is an index of its own, with a place for new objects if it is for a
// preview, so that nobody sees what is put into it.
type privateIndex struct {
	r   *repository
	dir string
	env []string
}

// newIndex makes one that is empty. The caller closes it.
func (r *repository) newIndex() (*privateIndex, error) {
	dir, err := os.MkdirTemp(r.scratch, "index-")
	if err != nil {
		return nil, noRoom(err)
	}
	x := &privateIndex{r: r, dir: dir, env: []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}}
	if r.previews {
		objects := filepath.Join(dir, "objects")
		if err := os.Mkdir(objects, 0o700); err != nil {
			x.Close()
			return nil, noRoom(err)
		}
		// In quotes, a colon ends no path.
		others := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(filepath.Join(r.commonDir, "objects")) + `"`
		x.env = append(x.env, "GIT_OBJECT_DIRECTORY="+objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+others)
	}
	return x, nil
}

// Close removes it.
func (x *privateIndex) Close() { _ = os.RemoveAll(x.dir) } // it is temporary

// copy takes the index of the repository as it is; there is none if nothing was ever
// staged.
func (x *privateIndex) copy() error {
	return copyFile(filepath.Join(x.dir, "index"), filepath.Join(x.r.gitDir, "index"))
}

// run runs git with this index.
func (x *privateIndex) run(ctx context.Context, c command) (output, error) {
	c.env = append(c.env, x.env...)
	c.writes = !x.r.previews
	return x.r.run(ctx, c)
}

// add puts the files as they are into the index, and takes out those that are gone.
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

// updateIndex puts files as they are into an index. git add would look into
// submodules.
func updateIndex(paths []string) command {
	return command{
		args: []string{"update-index", "--add", "--remove", "-z", "--stdin"}, stdin: []byte(strings.Join(paths, "\x00") + "\x00"), writes: true,
	}
}

// refuseLocked refuses to begin while another process changes the index, or when
// one was killed.
func (r *repository) refuseLocked() error {
	if _, err := os.Lstat(filepath.Join(r.gitDir, "index.lock")); err == nil {
		return tool.Errorf(tool.Conflict, "Another git process works in the repository, or one was killed and has left index.lock").
			WithHint("try again; if it stays, the user must see that no git runs there and remove .git/index.lock")
	}
	return nil
}
