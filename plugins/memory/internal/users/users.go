// Package users opens the notes of each user, which are in one file per user, and
// keeps an index of them in memory. The index follows the file: it is loaded at the
// user's first search or change, updated before each search, and dropped if it is
// idle or takes too much memory.
package users

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed"
	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/store"
)

// Options configure a [Set].
type Options struct {
	// Embedder makes vectors; required.
	Embedder embed.Embedder
	// Wait is how long a save or a search waits for the embedder.
	Wait time.Duration
	// Budget is how many bytes the indexes of all users may take; 0 means no limit.
	Budget int64
	// MaxOpen is the maximum number of open files, unless more are in use.
	MaxOpen int
	// Idle is how long a user's file stays open without a call.
	Idle time.Duration
	// MaxNotes is the maximum number of notes of a user.
	MaxNotes int
	// Keep is the maximum age of notes by category; 0 means no limit.
	Keep map[rank.Category]time.Duration
	// Logger logs events outside of calls.
	Logger *slog.Logger
}

// Set is the set of users with an open file. Make it with [New].
type Set struct {
	opts    Options
	queries *queries
	kick    chan struct{} // receives when there may be passages to embed
	stop    context.CancelFunc
	stopped sync.WaitGroup

	mu    sync.Mutex // guards users, and the fields of User that mention it
	users map[string]*User
}

// New returns a set and starts its background work, which runs until [Set.Close].
// The values of ctx are used, its end is not.
func New(ctx context.Context, opts Options) *Set {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Set{opts: opts, queries: newQueries(opts), kick: make(chan struct{}, 1), stop: stop, users: map[string]*User{}}
	s.stopped.Go(func() { s.upkeep(ctx) }) // both end with ctx, which Close cancels
	s.stopped.Go(func() { s.embedding(ctx) })
	return s
}

// Close stops the background work and closes all files that no call uses.
func (s *Set) Close() {
	s.stop()
	s.stopped.Wait()
	s.closeUnused(0)
}

// fileName returns the name of a user's file in the user's directory. It is a hash
// because a user's name may contain anything, and so two users have two files even
// in one directory.
func fileName(user string) string {
	sum := sha256.Sum256([]byte(user))
	return "notes-" + hex.EncodeToString(sum[:16]) + ".db"
}

// Use opens the notes of a user in the user's directory. The caller must call done
// when it no longer uses them.
func (s *Set) Use(ctx context.Context, user, dir string) (u *User, done func(), err error) {
	path := filepath.Join(dir, fileName(user))
	for {
		u = s.find(path, user)
		u.opening.Lock()
		err = u.open(ctx)
		u.opening.Unlock()
		if err == nil {
			s.makeRoom(u)
			return u, func() { s.release(u) }, nil
		}
		s.drop(u)
		s.release(u)
		if !errors.Is(err, errReplaced) {
			return nil, nil, err
		}
	}
}

// find returns the user with a file. The caller must call release.
func (s *Set) find(path, user string) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[path]
	if u == nil {
		u = &User{set: s, path: path, name: user}
		s.users[path] = u
	}
	u.calls++
	u.used = time.Now()
	return u
}

// release ends a call's use of a user.
func (s *Set) release(u *User) {
	s.touch(u)
	s.leave(u)
}

// touch records that a user was used now.
func (s *Set) touch(u *User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.used = time.Now()
}

// leave ends what find or hold began. If the user was dropped meanwhile, the last
// one closes the file.
func (s *Set) leave(u *User) {
	s.mu.Lock()
	u.calls--
	last := u.dropped && u.calls == 0
	s.mu.Unlock()
	if last {
		u.close()
	}
}

// drop removes a user from the set. The caller must be using it.
func (s *Set) drop(u *User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[u.path] == u {
		delete(s.users, u.path)
	}
	u.dropped = true
}

// makeRoom closes the least recently used files while there are too many open files
// or the indexes exceed the budget.
func (s *Set) makeRoom(except *User) {
	for {
		s.mu.Lock()
		var oldest *User
		for _, u := range s.users {
			if u != except && u.calls == 0 && (oldest == nil || u.used.Before(oldest.used)) {
				oldest = u
			}
		}
		if oldest == nil || len(s.users) <= s.opts.MaxOpen && !s.overBudget() {
			s.mu.Unlock()
			return
		}
		delete(s.users, oldest.path)
		oldest.dropped = true
		s.mu.Unlock()
		oldest.close()
	}
}

// overBudget reports whether the indexes exceed the budget. The caller holds mu.
func (s *Set) overBudget() bool {
	var sum int64
	for _, u := range s.users {
		sum += u.bytes.Load()
	}
	return s.opts.Budget > 0 && sum > s.opts.Budget
}

// roomFor reports whether the index of a user may take so many bytes, in addition to the indexes
// of users with calls in progress. Those of other users can be dropped.
func (s *Set) roomFor(u *User, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.users {
		if other != u && other.calls > 0 {
			bytes += other.bytes.Load()
		}
	}
	return s.opts.Budget <= 0 || bytes <= s.opts.Budget
}

// errReplaced means that another file is now at the path of the open one.
var errReplaced = errors.New("the file was replaced")

// opened opens a user's file.
func (s *Set) opened(ctx context.Context, path, user string) (*store.Store, error) {
	st, err := store.Open(ctx, store.Options{Path: path, User: user, Embedder: s.opts.Embedder.Name(), MaxNotes: s.opts.MaxNotes})
	if err != nil {
		return nil, fmt.Errorf("open the notes: %w", err)
	}
	return st, nil
}
