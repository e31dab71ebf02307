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

// User is one user's notes, in use by a call; see [Set.Use].
type User struct {
	set  *Set
	path string
	name string

	calls   int       // guarded by set.mu: those that use it
	used    time.Time // guarded by set.mu: when it was used last
	dropped bool      // guarded by set.mu: the last call closes the file

	opening sync.Mutex // held while the file is opened
	store   *store.Store

	following sync.Mutex // held while the index follows the file; guards index, rev
	index     *rank.Index
	rev       int64
	// bytes is about what the index takes.
	bytes atomic.Int64
	// needs is more than 0 if there is no index, since it would take more than that,
	// and there was no room.
	needs atomic.Int64
}

// open opens the file if that was not done, and finds out if it is another one
// now. The caller holds opening.
func (u *User) open(ctx context.Context) error {
	if u.store == nil {
		var err error
		u.store, err = u.set.opened(ctx, u.path, u.name)
		u.set.Embed() // there may be notes of another embedder
		return err
	}
	if !u.store.Current() {
		return errReplaced
	}
	return nil
}

// close closes the file, after the last call.
func (u *User) close() {
	u.opening.Lock()
	defer u.opening.Unlock()
	if u.store != nil {
		if err := u.store.Close(); err != nil {
			u.set.opts.Logger.Warn("a file of notes could not be closed", "error", err)
		}
	}
}

// Store returns the file.
func (u *User) Store() *store.Store { return u.store }

// Index returns the index, in step with the file; nil if there is no room for it.
// Whoever changes the file calls it afterwards, so that the next search need not
// wait.
func (u *User) Index(ctx context.Context) (*rank.Index, error) {
	u.following.Lock()
	defer u.following.Unlock()
	if needs := u.needs.Load(); needs > 0 && !u.set.roomFor(u, needs) {
		return nil, nil //nolint:nilnil // what the method promises
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
		u.set.opts.Logger.Warn("the notes of a user take too much memory: only their words are searched", "budget", u.set.opts.Budget)
		return nil, nil //nolint:nilnil // what the method promises
	}
	return u.index, err
}

// load reads everything.
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

// forget gives up the index.
func (u *User) forget() {
	u.index, u.rev = nil, 0
	u.bytes.Store(0)
}

// errTooLarge says that the indexes take more than the budget.
var errTooLarge = errors.New("the indexes take too much memory")

// follow brings the index up to date. It reads the next notes while it takes in
// the last ones.
func (u *User) follow(ctx context.Context) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	read := make(chan []rank.Note, 2) // a full one lets the reading wait
	taken := make(chan error, 1)
	go func() { // ends with read, and is waited for below
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

// take takes notes into the index, as long as there is room.
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
