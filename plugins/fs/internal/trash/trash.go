// Package trash keeps what a user has deleted, in the user's own directory: one directory for
// each deletion, with the file or directory itself as "content" and a description in
// "info.json". It removes the oldest items when the trash exceeds its bounds.
package trash

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Trash is the trash of one user.
type Trash struct {
	folder  *roots.Roots
	bounds  Bounds
	onClose []func()
}

// Info describes an item, as in its info.json.
type Info struct {
	// Path is the absolute path where the item was.
	Path string `json:"path"`
	// Shown is that path as results show it.
	Shown   string    `json:"shown"`
	Deleted time.Time `json:"deleted"`
	Kind    string    `json:"kind"`
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`
}

// Open opens the trash in a directory of the user's own, outside of the
// workspace. options are those of the workspace. The caller closes it.
func Open(userDir string, options roots.Options, bounds Bounds) (*Trash, error) {
	unavailable := tool.Errorf(tool.Unavailable, "There is no trash").
		WithHint("the host gives the plugin no directory for this user; ask the user to do it")
	if userDir == "" {
		return nil, unavailable
	}
	// The rules of the workspace apply to the trash, but not the host's list
	// of protected paths: it may contain the host's own directory.
	options.Protected = nil
	folder, err := roots.Open([]string{userDir}, options)
	if err != nil {
		return nil, unavailable.WithCause(err)
	}
	return &Trash{folder: folder, bounds: bounds}, nil
}

// Close closes the trash and everything opened in it.
func (t *Trash) Close() {
	for _, f := range t.onClose {
		f()
	}
	_ = t.folder.Close() // every write is durable already
}

// Slot is the place of one item.
type Slot struct {
	ID            string
	Content, info *roots.Target
}

// Slot returns a place for a new item. It creates nothing.
func (t *Trash) Slot() (Slot, error) {
	return t.slotOf(NewID())
}

// NewID returns an id for a new item. It begins with the time.
func NewID() string {
	return time.Now().UTC().Format(idTime) + "-" + strings.ToLower(rand.Text()[:10])
}

func (t *Trash) slotOf(id string) (Slot, error) {
	s := Slot{ID: id}
	var err error
	if s.Content, err = t.Target(id, "content"); err != nil {
		return s, err
	}
	s.info, err = t.Target(id, "info.json")
	return s, err
}

// Target opens a file of an item, such as "content". It is closed with the trash.
func (t *Trash) Target(id, name string) (*roots.Target, error) {
	target, err := t.folder.Target(path.Join("trash", id, name), roots.TargetOptions{Parents: true})
	if err != nil {
		return nil, Hidden(err)
	}
	t.onClose = append(t.onClose, target.Close)
	return target, nil
}

// Put moves a file or directory into its slot. It writes the description first, so that
// the origin of everything in the trash is known.
func (t *Trash) Put(ctx context.Context, s Slot, thing *roots.Target, contents *roots.Contents) error {
	data, err := describeItem(thing, contents.Files, contents.Bytes)
	if err != nil {
		return err
	}
	if err := s.info.Write(data, roots.WriteOptions{Create: true}); err != nil {
		return Hidden(err)
	}
	unlock, err := t.folder.Lock(ctx, s.Content)
	if err != nil {
		return Hidden(err)
	}
	defer unlock()
	if err := thing.MoveTo(ctx, s.Content, roots.MoveOptions{}); err != nil {
		return t.unmoved(s, err)
	}
	return nil
}

// unmoved returns the error of a failed move. It removes the slot if it is empty; otherwise the
// slot may hold the only copy.
func (t *Trash) unmoved(s Slot, err error) error {
	if s.Content.Gone() {
		t.Forget(s.ID)
		return err
	}
	told := *tool.AsError(err)
	told.Message += "; the moved part is in the trash as " + s.ID
	return &told
}

// describeItem returns the content of info.json.
func describeItem(thing *roots.Target, files int, bytes int64) ([]byte, error) {
	data, err := json.MarshalIndent(Info{
		Path: thing.Identity(), Shown: thing.String(), Deleted: time.Now().UTC(),
		Kind: roots.Kind(thing.Info().Mode()), Files: files, Bytes: bytes,
	}, "", "  ")
	return append(data, '\n'), err
}

// Keep copies a file into the trash, before the file is removed.
func (t *Trash) Keep(id string, file *roots.Target, content []byte) error {
	s, err := t.slotOf(id)
	if err != nil {
		return err
	}
	defer s.Content.Close() // not to hold many files open
	defer s.info.Close()
	info, err := describeItem(file, 1, int64(len(content)))
	if err != nil {
		return err
	}
	return Hidden(roots.ChangeAll([]roots.Change{{Target: s.info, Content: info}, {Target: s.Content, Content: content, Like: file}}))
}

// Forget removes the slot of an item that did not arrive or was restored.
func (t *Trash) Forget(id string) {
	place, err := t.folder.Target(path.Join("trash", id), roots.TargetOptions{})
	if err != nil {
		return
	}
	defer place.Close()
	_ = place.Remove() // an info without content is nothing to restore
}

// Hidden removes the hint from an error about the trash, since it names a folder of the
// host.
func Hidden(err error) error {
	known, ok := errors.AsType[*tool.Error](err)
	if !ok {
		return err
	}
	told := *known
	told.Hint = ""
	return &told
}

// Lock locks a place in the trash until the trash is closed.
func (t *Trash) Lock(ctx context.Context, place *roots.Target) error {
	unlock, err := t.folder.Lock(ctx, place)
	if err != nil {
		return Hidden(err)
	}
	t.onClose = append(t.onClose, unlock)
	return nil
}
