package main

import (
	"context"
	"errors"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/plugins/memory/internal/users"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// call is one tool call with its user's notes.
type call struct {
	*sdk.Call
	*state
	user *users.User
	now  time.Time
}

// open opens the notes of the call's user. The caller must call done when the call
// ends.
func (m *memory) open(ctx context.Context, c *sdk.Call) (opened *call, done func(), err error) {
	s := m.state.Load()
	switch {
	case s == nil:
		return nil, nil, tool.Errorf(tool.Unavailable, "The plugin is not configured")
	case c.User() == "":
		return nil, nil, tool.Errorf(tool.Unavailable, "Notes belong to a user, and this call has no user").
			WithHint("ask the administrator to give calls a user (auth in the configuration)")
	case c.UserDir() == "":
		return nil, nil, tool.Errorf(tool.Unavailable, "The plugin has no directory for this user's notes").
			WithHint("the host did not pass a user directory; ask the administrator")
	}
	if s.key.fetch(ctx, c) {
		s.users.Embed() // embed the notes that were waiting for the key
	}
	u, done, err := s.users.Use(ctx, c.User(), c.UserDir())
	if err != nil {
		return nil, nil, toolError(err)
	}
	return &call{Call: c, state: s, user: u, now: time.Now()}, done, nil
}

// toolError turns an error into one for the model.
func toolError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, users.ErrVectors) {
		return err
	}
	if known, ok := errors.AsType[*tool.Error](err); ok {
		return known
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return tool.Errorf(tool.NotFound, "The note does not exist").WithHint("find notes with memory_search or memory_list")
	case errors.Is(err, store.ErrFull):
		return tool.Errorf(tool.ResourceExhausted, "The notes cannot be written: the disk is full or has failed. Nothing was changed").
			WithHint("delete notes you no longer need; if that also fails, ask the administrator for more disk space or a larger file_size in the plugin's sandbox").WithCause(err)
	case errors.Is(err, store.ErrTooMany):
		return tool.Errorf(tool.ResourceExhausted, "The user has reached the maximum number of notes: nothing was saved").
			WithHint("delete notes you no longer need, or update an existing note")
	case errors.Is(err, store.ErrBusy):
		return tool.Errorf(tool.Unavailable, "Another process is writing the user's notes").WithRetry(time.Second).WithCause(err)
	case errors.Is(err, store.ErrNewer):
		return tool.Errorf(tool.Unavailable, "A newer version of this plugin wrote the user's notes, and this version cannot read them").
			WithHint("nothing was changed; ask the administrator to install the newer version").WithCause(err)
	case errors.Is(err, store.ErrFile):
		return tool.Errorf(tool.Unavailable, "The user's notes cannot be opened: the file is damaged or is not a notes file of this user").
			WithHint("nothing was changed; ask the administrator: the host's log has the reason, and a snapshot can be restored").WithCause(err)
	case errors.Is(err, users.ErrVectors):
		return tool.Errorf(tool.Unavailable, "Vector search is not available now").
			WithHint("search with mode hybrid or keyword").WithRetry(30 * time.Second).WithCause(err)
	}
	return tool.Errorf(tool.Internal, "The user's notes could not be read or written").WithCause(err)
}
