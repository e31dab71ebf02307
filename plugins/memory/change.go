package main

import (
	"context"
	"errors"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

// named is how a call names a note.
type named struct {
	NoteID string
	Key    string
}

// check makes sure that a note is named once.
func (n named) check() error {
	switch {
	case n.NoteID == "" && n.Key == "":
		return tool.Errorf(tool.InvalidArgument, "missing required field 'note_id' in arguments").WithHint("name the note by note_id, or by its key")
	case n.NoteID != "" && n.Key != "":
		return tool.Errorf(tool.InvalidArgument, "both note_id and key are given").WithHint("name the note by one of them")
	}
	return nil
}

// unknown is the error if there is no such note.
func (n named) unknown() error {
	hint := "memory_search and memory_list tell the notes that there are"
	if n.Key != "" {
		return tool.Errorf(tool.NotFound, "There is no note with the key %.80q", n.Key).WithHint("%s", hint)
	}
	return tool.Errorf(tool.NotFound, "There is no note %.80q", n.NoteID).WithHint("%s", hint)
}

// in returns the note in a change that is being made.
func (n named) in(tx *store.Tx, now time.Time) (store.Note, error) {
	find, name := tx.ByNoteID, n.NoteID
	if n.Key != "" {
		find, name = tx.ByKey, n.Key
	}
	note, err := find(name)
	return note, n.there(&note, err, now)
}

// there says if a note was found that has not expired.
func (n named) there(note *store.Note, err error, now time.Time) error {
	if errors.Is(err, store.ErrNotFound) || err == nil && note.Expired(now) {
		return n.unknown()
	}
	return err
}

type updateArgs struct {
	NoteID  string `json:"note_id,omitempty" jsonschema:"the note to change, as memory_save and memory_search name it"`
	Key     string `json:"key,omitempty" jsonschema:"or its key"`
	Content string `json:"content" jsonschema:"what the note says from now on, in whole"`
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
	NoteID string `json:"note_id,omitempty" jsonschema:"the note to delete, as memory_save and memory_search name it"`
	Key    string `json:"key,omitempty" jsonschema:"or its key"`
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
	if errors.Is(err, store.ErrFull) { // the first time has emptied the log, if that was it
		err = c.user.Store().Write(ctx, deleting)
	}
	if err != nil {
		return saved{}, err
	}
	if err := c.user.Store().Forget(ctx); err != nil {
		c.Logger().Warn("the log still holds a note that was deleted", "error", err) // until it is written over
	}
	c.follow(ctx)
	return saved{Message: "Deleted memory: " + name(&n)}, nil
}

// follow brings the index up to date after a change, so that the next search
// need not wait, and has embedded what has no vector yet.
func (c *call) follow(ctx context.Context) {
	index, err := c.user.Index(ctx)
	if err != nil {
		c.Logger().Warn("the index could not follow a change; the next search tries again", "error", err)
	}
	if index == nil || index.Pending() > 0 {
		c.users.Embed()
	}
}
