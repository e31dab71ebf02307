package users

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/store"
)

// User is one user's notes. A call gets it from [Set.Use].
type User struct {
	set  *Set
	path string
	name string

	calls   int       // guarded by set.mu: uses in progress
	used    time.Time // guarded by set.mu: time of the last use
	dropped bool      // guarded by set.mu: the last use closes the file

	opening sync.Mutex // held while the file is opened
	store   *store.Store

	following sync.Mutex // held while the index is updated; guards index, rev
	index     *rank.Index
	rev       int64
	// bytes is the approximate size of the index.
	bytes atomic.Int64
	// needs is not 0 if there is no index because it would take more than so many
	// bytes, and there was no room.
	needs atomic.Int64
}

// open opens the file if it is not open, and reports errReplaced if another file is
// now at its path. The caller holds opening.
func (u *User) open(ctx context.Context) error {
	if u.store == nil {
		var err error
		u.store, err = u.set.opened(ctx, u.path, u.name)
		u.set.Embed() // there may be notes without vectors of this embedder
		return err
	}
	if !u.store.Current() {
		return errReplaced
	}
	return nil
}

// close closes the file after the last use.
func (u *User) close() {
	u.opening.Lock()
	defer u.opening.Unlock()
	if u.store != nil {
		if err := u.store.Close(); err != nil {
			u.set.opts.Logger.Warn("a file of notes could not be closed", "error", err)
		}
	}
}

// Store returns the open file.
func (u *User) Store() *store.Store { return u.store }

// Index returns the index, updated to the state of the file; nil if there is no
// room for it. Call it after each change of the file, so that the next search does
// not have to update the index.
func (u *User) Index(ctx context.Context) (*rank.Index, error) {
	u.following.Lock()
	defer u.following.Unlock()
	if needs := u.needs.Load(); needs > 0 && !u.set.roomFor(u, needs) {
		return nil, nil //nolint:nilnil // documented
	}
	rev, err := u.store.Rev(ctx)
	if err != nil || u.index != nil && rev == u.rev {
		return u.index, err
	}
	if u.index == nil || u.index.Worn() {
		err = u.load(ctx)
	} else if err = u.follow(ctx); errors.Is(err, store.ErrReload) {
		err = u.load(ctx)
	}
	if errors.Is(err, errTooLarge) {
		u.needs.Store(u.bytes.Load())
		u.forget()
		u.set.opts.Logger.Warn("the index of a user's notes does not fit into memory: only words are searched", "budget", u.set.opts.Budget)
		return nil, nil //nolint:nilnil // documented
	}
	return u.index, err
}

// load builds the index from the whole file.
func (u *User) load(ctx context.Context) error {
	u.forget()
	fresh, err := rank.New()
	if err != nil {
		return err
	}
	u.index = fresh
	if err = u.follow(ctx); err != nil && !errors.Is(err, errTooLarge) {
		u.forget()
	}
	return err
}

// forget drops the index.
func (u *User) forget() {
	u.index, u.rev = nil, 0
	u.bytes.Store(0)
}

// errTooLarge means that the indexes would exceed the budget.
var errTooLarge = errors.New("the indexes take too much memory")

// follow updates the index. It reads the next batch of notes while it adds the last
// one.
func (u *User) follow(ctx context.Context) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	read := make(chan []rank.Note, 2) // reading waits while it is full
	taken := make(chan error, 1)
	go func() { // ends when read is closed; awaited below
		var err error
		for notes := range read {
			if err == nil {
				if err = u.take(ctx, notes); err != nil {
					giveUp(err)
				}
			}
		}
		taken <- err
	}()
	rev, err := u.store.Changes(ctx, u.rev, store.Reader{
		Put: func(notes []rank.Note) error {
			read <- notes
			return context.Cause(ctx)
		},
		Remove: func(ids []int64) error { return u.index.Remove(ctx, ids...) },
	})
	close(read)
	if failed := <-taken; failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	u.rev = rev
	u.needs.Store(0)
	return nil
}

// take adds notes to the index while there is room.
func (u *User) take(ctx context.Context, notes []rank.Note) error {
	if err := u.index.Put(ctx, notes); err != nil {
		return err
	}
	u.bytes.Store(u.index.Bytes())
	u.set.makeRoom(u)
	if !u.set.roomFor(u, u.bytes.Load()) {
		return errTooLarge
	}
	return nil
}
