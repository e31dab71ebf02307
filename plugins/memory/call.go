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

// call is one call of a tool, with the notes of its user.
type call struct {
	*sdk.Call
	*state
	user *users.User
	now  time.Time
}

// open opens the notes of the call's user. done says that the call has ended.
func (m *memory) open(ctx context.Context, c *sdk.Call) (opened *call, done func(), err error) {
	s := m.state.Load()
	switch {
	case s == nil:
		return nil, nil, tool.Errorf(tool.Unavailable, "The plugin was not configured")
	case c.User() == "":
		return nil, nil, tool.Errorf(tool.Unavailable, "There is no memory without a user, and the call does not say whose it is").
			WithHint("notes belong to a user: ask the administrator how calls get one (auth in the configuration)")
	case c.UserDir() == "":
		return nil, nil, tool.Errorf(tool.Unavailable, "There is no place for the user's notes").
			WithHint("the host gives the plugin no directory of the user's own; ask the administrator")
	}
	if s.key.bring(ctx, c) {
		s.users.Embed() // what has waited for it
	}
	u, done, err := s.users.Use(ctx, c.User(), c.UserDir())
	if err != nil {
		return nil, nil, told(err)
	}
	return &call{Call: c, state: s, user: u, now: time.Now()}, done, nil
}

// told turns an error into one for a model.
func told(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, users.ErrVectors) {
		return err
	}
	if known, ok := errors.AsType[*tool.Error](err); ok {
		return known
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return tool.Errorf(tool.NotFound, "There is no such note").WithHint("memory_search and memory_list tell the notes that there are")
	case errors.Is(err, store.ErrFull):
		return tool.Errorf(tool.ResourceExhausted, "There is no room for more notes on the disk, or it does not work: nothing was changed").
			WithHint("delete notes that are no longer needed; if that fails, too, ask the administrator for room on the disk, or in file_size of the plugin's sandbox").WithCause(err)
	case errors.Is(err, store.ErrTooMany):
		return tool.Errorf(tool.ResourceExhausted, "The user has as many notes as may be: nothing was saved").
			WithHint("delete notes that are no longer needed, or update one")
	case errors.Is(err, store.ErrBusy):
		return tool.Errorf(tool.Unavailable, "Another process is writing the user's notes").WithRetry(time.Second).WithCause(err)
	case errors.Is(err, store.ErrNewer):
		return tool.Errorf(tool.Unavailable, "The user's notes were written by a newer version of this plugin, which this one cannot read").
			WithHint("nothing was changed; ask the administrator to bring back the newer version").WithCause(err)
	case errors.Is(err, store.ErrFile):
		return tool.Errorf(tool.Unavailable, "The user's notes cannot be used: their file is damaged, or of something else").
			WithHint("nothing was changed; ask the administrator, who finds the reason in the host's log and may bring back a snapshot").WithCause(err)
	case errors.Is(err, users.ErrVectors):
		return tool.Errorf(tool.Unavailable, "Notes cannot be searched by vectors now").
			WithHint("search with mode keyword, or hybrid").WithRetry(30 * time.Second).WithCause(err)
	}
	return tool.Errorf(tool.Internal, "The user's notes could not be read or written").WithCause(err)
}
