// Package users keeps the notes of each user in a file of the user's own, and in
// memory what it takes to find them. Memory follows the file: it is read when the
// first call of a user comes, caught up with before each search, and forgotten
// when it is not used or too much.
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

// Options say how notes are kept.
type Options struct {
	// Embedder makes vectors; required.
	Embedder embed.Embedder
	// Wait is how long a save or a search waits for the embedder.
	Wait time.Duration
	// Budget is how many bytes the indexes of all users may take; 0 is no bound.
	Budget int64
	// MaxOpen is how many users' files are open at a time.
	MaxOpen int
	// Idle is how long a user's file stays open without a call.
	Idle time.Duration
	// MaxNotes is how many notes a user may have.
	MaxNotes int
	// Keep says how old notes of a category become; 0 is no bound.
	Keep map[rank.Category]time.Duration
	// Logger takes what happens without a call.
	Logger *slog.Logger
}

// Set is all users with an open file. Make it with [New].
type Set struct {
	opts    Options
	queries *queries
	kick    chan struct{} // says that there may be something to embed
	stop    context.CancelFunc
	stopped sync.WaitGroup

	mu    sync.Mutex // guards users, and the fields of a User that it names
	users map[string]*User
}

// New returns a set and starts what it does in the background, until [Set.Close].
func New(ctx context.Context, opts Options) *Set {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Set{opts: opts, queries: newQueries(opts), kick: make(chan struct{}, 1), stop: stop, users: map[string]*User{}}
	s.stopped.Go(func() { s.upkeep(ctx) }) // both end with ctx, which Close ends
	s.stopped.Go(func() { s.embedding(ctx) })
	return s
}

// Close ends what runs in the background and closes all files that no call uses.
func (s *Set) Close() {
	s.stop()
	s.stopped.Wait()
	s.closeUnused(0)
}

// fileName is the file of a user in the user's directory. Its name is a hash,
// since a user's name may hold anything; so two users have two files even in one
// directory.
func fileName(user string) string {
	sum := sha256.Sum256([]byte(user))
	return "notes-" + hex.EncodeToString(sum[:16]) + ".db"
}

// Use opens the notes of a user in the user's directory. done says that they are
// no longer used.
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

// find returns the user with a file, to be released.
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

// release says that a call of the user has ended.
func (s *Set) release(u *User) {
	s.touch(u)
	s.leave(u)
}

// touch says that a user was used just now.
func (s *Set) touch(u *User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.used = time.Now()
}

// leave ends what find or hold began. The last one closes the file if the user was
// dropped meanwhile.
func (s *Set) leave(u *User) {
	s.mu.Lock()
	u.calls--
	last := u.dropped && u.calls == 0
	s.mu.Unlock()
	if last {
		u.close()
	}
}

// drop takes a user out of the set. The caller has it in use.
func (s *Set) drop(u *User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[u.path] == u {
		delete(s.users, u.path)
	}
	u.dropped = true
}

// makeRoom closes files that were not used for long while there are too many.
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

// overBudget reports whether the indexes take too much. The caller holds mu.
func (s *Set) overBudget() bool {
	var sum int64
	for _, u := range s.users {
		sum += u.bytes.Load()
	}
	return s.opts.Budget > 0 && sum > s.opts.Budget
}

// roomFor reports whether the index of a user may take so many bytes, beside those
// of users that have calls under way: the others make room.
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

// errReplaced says that the file at a path is no longer the one that is open.
var errReplaced = errors.New("the file was replaced")

// opened opens a user's file.
func (s *Set) opened(ctx context.Context, path, user string) (*store.Store, error) {
	st, err := store.Open(ctx, store.Options{Path: path, User: user, Embedder: s.opts.Embedder.Name(), MaxNotes: s.opts.MaxNotes})
	if err != nil {
		return nil, fmt.Errorf("open the notes: %w", err)
	}
	return st, nil
}
