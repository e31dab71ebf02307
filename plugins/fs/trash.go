package main

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

// trash holds what a user has deleted: a directory for each call, with the
// thing itself as "content" and what is known of it in "info.json".
type trash struct {
	folder  *roots.Roots
	bounds  trashBounds
	onClose []func()
}

// trashInfo is what info.json holds.
type trashInfo struct {
	// Path is absolute: where the thing was.
	Path string `json:"path"`
	// Shown is the path as results show it.
	Shown   string    `json:"shown"`
	Deleted time.Time `json:"deleted"`
	Kind    string    `json:"kind"`
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`
}

// openTrash opens the trash of the call's user. It is closed with the
// workspace.
func (w *workspace) openTrash() (*trash, error) {
	unavailable := tool.Errorf(tool.Unavailable, "There is no trash to delete to, or to restore from").
		WithHint("the host gives the plugin no directory of the user's own; ask the user to do it")
	if w.userDir == "" {
		return nil, unavailable
	}
	// The workspace's rules hold for what is put there, the host's list of
	// protected paths does not: it may well name the host's own directory.
	options := w.options
	options.Protected = nil
	folder, err := roots.Open([]string{w.userDir}, options)
	if err != nil {
		return nil, unavailable.WithCause(err)
	}
	t := &trash{folder: folder, bounds: w.trashBounds}
	w.onClose = append(w.onClose, t.close)
	return t, nil
}

func (t *trash) close() {
	for _, f := range t.onClose {
		f()
	}
	_ = t.folder.Close() // what was written is durable
}

// trashSlot is where one thing goes.
type trashSlot struct {
	id            string
	content, info *roots.Target
}

// slot finds a place for one thing, without making it.
func (t *trash) slot() (trashSlot, error) {
	return t.slotOf(newTrashID())
}

// newTrashID returns a name for one thing, which begins with the time.
func newTrashID() string {
	return time.Now().UTC().Format(idTime) + "-" + strings.ToLower(rand.Text()[:10])
}

func (t *trash) slotOf(id string) (trashSlot, error) {
	s := trashSlot{id: id}
	var err error
	if s.content, err = t.target(id, "content"); err != nil {
		return s, err
	}
	s.info, err = t.target(id, "info.json")
	return s, err
}

func (t *trash) target(id, name string) (*roots.Target, error) {
	target, err := t.folder.Target(path.Join("trash", id, name), roots.TargetOptions{Parents: true})
	if err != nil {
		return nil, hidden(err)
	}
	t.onClose = append(t.onClose, target.Close)
	return target, nil
}

// put moves a thing to its place. What is known of it is written before, so
// that nothing is there whose origin is not known.
func (t *trash) put(ctx context.Context, s trashSlot, thing *roots.Target, contents *roots.Contents) error {
	data, err := describeThing(thing, contents.Files, contents.Bytes)
	if err != nil {
		return err
	}
	if err := s.info.Write(data, roots.WriteOptions{Create: true}); err != nil {
		return hidden(err)
	}
	unlock, err := t.folder.Lock(ctx, s.content)
	if err != nil {
		return hidden(err)
	}
	defer unlock()
	if err := thing.MoveTo(ctx, s.content, roots.MoveOptions{}); err != nil {
		return t.unmoved(s, err)
	}
	return nil
}

// unmoved says what has become of a thing that could not be moved to its place,
// which is forgotten if nothing has come there: else it may be all that is left of
// the thing.
func (t *trash) unmoved(s trashSlot, err error) error {
	if s.content.Gone() {
		t.forget(s.id)
		return err
	}
	told := *tool.AsError(err)
	told.Message += "; what has come to the trash is there as " + s.id
	return &told
}

// describeThing returns what is known of a thing, as info.json holds it.
func describeThing(thing *roots.Target, files int, bytes int64) ([]byte, error) {
	data, err := json.MarshalIndent(trashInfo{
		Path: thing.Identity(), Shown: thing.String(), Deleted: time.Now().UTC(),
		Kind: roots.Kind(thing.Info().Mode()), Files: files, Bytes: bytes,
	}, "", "  ")
	return append(data, '\n'), err
}

// keep puts a copy of a file into the trash, before the file is removed.
func (t *trash) keep(id string, file *roots.Target, content []byte) error {
	s, err := t.slotOf(id)
	if err != nil {
		return err
	}
	defer s.content.Close() // not to hold many files open
	defer s.info.Close()
	info, err := describeThing(file, 1, int64(len(content)))
	if err != nil {
		return err
	}
	return hidden(roots.ChangeAll([]roots.Change{{Target: s.info, Content: info}, {Target: s.content, Content: content, Like: file}}))
}

// forget removes the place of a thing that did not get there, or is gone again.
func (t *trash) forget(id string) {
	place, err := t.folder.Target(path.Join("trash", id), roots.TargetOptions{})
	if err != nil {
		return
	}
	defer place.Close()
	_ = place.Remove() // an info without content is nothing to restore
}

// hidden takes the hint from an error about the trash: it names a folder of the
// host.
func hidden(err error) error {
	known, ok := errors.AsType[*tool.Error](err)
	if !ok {
		return err
	}
	told := *known
	told.Hint = ""
	return &told
}
