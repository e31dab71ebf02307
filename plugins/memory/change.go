package main

import (
	"context"
	"errors"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

// named identifies a note by note_id or by key.
type named struct {
	NoteID string
	Key    string
}

// check returns an error unless exactly one of note_id and key is given.
func (n named) check() error {
	switch {
	case n.NoteID == "" && n.Key == "":
		return tool.Errorf(tool.InvalidArgument, "missing required field 'note_id' in arguments").WithHint("give the note_id or the key of the note")
	case n.NoteID != "" && n.Key != "":
		return tool.Errorf(tool.InvalidArgument, "both note_id and key are given").WithHint("give only one of them")
	}
	return nil
}

// unknown returns the error for a note that does not exist.
func (n named) unknown() error {
	hint := "find notes with memory_search or memory_list"
	if n.Key != "" {
		return tool.Errorf(tool.NotFound, "No note has the key %.80q", n.Key).WithHint("%s", hint)
	}
	return tool.Errorf(tool.NotFound, "The note %.80q does not exist", n.NoteID).WithHint("%s", hint)
}

// in returns the note as the transaction sees it.
func (n named) in(tx *store.Tx, now time.Time) (store.Note, error) {
	find, name := tx.ByNoteID, n.NoteID
	if n.Key != "" {
		find, name = tx.ByKey, n.Key
	}
	note, err := find(name)
	return note, n.there(&note, err, now)
}

// there returns err, or an error if the note does not exist or has expired.
func (n named) there(note *store.Note, err error, now time.Time) error {
	if errors.Is(err, store.ErrNotFound) || err == nil && note.Expired(now) {
		return n.unknown()
	}
	return err
}

type updateArgs struct {
	NoteID  string `json:"note_id,omitempty" jsonschema:"id of the note"`
	Key     string `json:"key,omitempty" jsonschema:"its key"`
	Content string `json:"content" jsonschema:"whole new text"`
}

// update is the tool memory_update.
func update(ctx context.Context, c *call, in updateArgs) (saved, error) {
	which := named{in.NoteID, in.Key}
	if err := which.check(); err != nil {
		return saved{}, err
	}
	if err := checkContent(c, in.Content); err != nil {
		return saved{}, err
	}
	passages, err := c.user.Prepare(ctx, in.Content)
	if err != nil {
		return saved{}, err
	}
	var n store.Note
	err = c.user.Store().Write(ctx, func(tx *store.Tx) error {
		if n, err = which.in(tx, c.now); err != nil {
			return err
		}
		n.Content, n.Passages, n.Updated = in.Content, passages, c.now.UTC().Truncate(time.Millisecond)
		return tx.Put(&n)
	})
	if err != nil {
		return saved{}, err
	}
	c.follow(ctx)
	return saved{NoteID: n.NoteID, Message: "Updated memory: " + name(&n)}, nil
}

type removeArgs struct {
	NoteID string `json:"note_id,omitempty" jsonschema:"id of the note"`
	Key    string `json:"key,omitempty" jsonschema:"its key"`
}

// remove is the tool memory_delete.
func remove(ctx context.Context, c *call, in removeArgs) (saved, error) {
	which := named(in)
	if err := which.check(); err != nil {
		return saved{}, err
	}
	var n store.Note
	deleting := func(tx *store.Tx) error {
		var err error
		if n, err = which.in(tx, c.now); err != nil {
			return err
		}
		return tx.Delete(n.ID)
	}
	err := c.user.Store().Write(ctx, deleting)
	if errors.Is(err, store.ErrFull) { // the failed attempt emptied the log, which may have made room
		err = c.user.Store().Write(ctx, deleting)
	}
	if err != nil {
		return saved{}, err
	}
	if err := c.user.Store().Forget(ctx); err != nil {
		c.Logger().Warn("the write-ahead log still holds a deleted note", "error", err) // until it is overwritten
	}
	c.follow(ctx)
	return saved{Message: "Deleted memory: " + name(&n)}, nil
}

// follow updates the index after a change, so that the next search does not have
// to, and starts embedding of passages without a vector.
func (c *call) follow(ctx context.Context) {
	index, err := c.user.Index(ctx)
	if err != nil {
		c.Logger().Warn("the index could not be updated after a change; the next search tries again", "error", err)
	}
	if index == nil || index.Pending() > 0 {
		c.users.Embed()
	}
}
