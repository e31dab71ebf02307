package users

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/embed"
)

const (
	// upkeepEvery is how often expired notes are removed and idle files are closed.
	upkeepEvery = time.Minute
	// firstRest is the wait before the embedder is asked again after a failure. It
	// doubles with each failure up to longestRest.
	firstRest, longestRest = time.Second, 2 * time.Minute
)

// upkeep runs periodic work until ctx ends.
func (s *Set) upkeep(ctx context.Context) {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.closeUnused(s.opts.Idle)
			s.each(func(u *User) { u.purge(ctx) })
		}
	}
}

// embedding embeds passages without a vector in the background until ctx ends.
func (s *Set) embedding(ctx context.Context) {
	var again <-chan time.Time
	rest := firstRest
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		case <-again:
		}
		again = nil
		if s.embedPending(ctx) {
			rest = firstRest
			continue
		}
		again = time.After(rest)
		rest = min(2*rest, longestRest)
	}
}

// embedPending embeds the pending passages of all users, one batch of each user in
// turn. It reports whether all were embedded.
func (s *Set) embedPending(ctx context.Context) bool {
	failed := map[*User]bool{} // users to skip until the next run
	for {
		left := false
		s.each(func(u *User) {
			if ctx.Err() != nil || failed[u] {
				return
			}
			more, err := u.embedSome(ctx)
			switch {
			case err == nil:
				left = left || more
			case ctx.Err() == nil:
				failed[u] = true
				s.opts.Logger.Warn("notes could not be embedded; the plugin tries again later", "error", err)
			}
		})
		if !left {
			return len(failed) == 0
		}
	}
}

// each calls f for every user whose file is open, one after the other. Only the
// user passed to f is kept from being closed.
func (s *Set) each(f func(*User)) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.users))
	s.mu.Unlock()
	for _, u := range all {
		if !s.hold(u) {
			continue
		}
		if u.ready() {
			f(u)
		}
		s.leave(u)
	}
}

// hold keeps a user from being closed until leave. It returns false if the user was
// dropped.
func (s *Set) hold(u *User) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !u.dropped {
		u.calls++
	}
	return !u.dropped
}

// ready reports whether the file is open. A call may still be opening it.
func (u *User) ready() bool {
	u.opening.Lock()
	defer u.opening.Unlock()
	return u.store != nil
}

// closeUnused closes files without a use for at least since.
func (s *Set) closeUnused(since time.Duration) {
	s.mu.Lock()
	var idle []*User
	for path, u := range s.users {
		if u.calls == 0 && time.Since(u.used) >= since {
			delete(s.users, path)
			u.dropped = true
			idle = append(idle, u)
		}
	}
	s.mu.Unlock()
	for _, u := range idle {
		u.close()
	}
}

// purge removes expired notes.
func (u *User) purge(ctx context.Context) {
	n, err := u.store.Upkeep(ctx, time.Now(), u.set.opts.Keep)
	if err != nil && ctx.Err() == nil {
		u.set.opts.Logger.Warn("expired notes could not be removed", "error", err)
	}
	if n > 0 {
		u.set.opts.Logger.Debug("removed expired notes", "notes", n)
	}
}

// embedSome embeds one batch of passages and reports whether there may be more.
func (u *User) embedSome(ctx context.Context) (more bool, err error) {
	pending, err := u.store.Unembedded(ctx, embed.Batch)
	if err != nil || len(pending) == 0 {
		return false, err
	}
	texts := make([]string, len(pending))
	for i, p := range pending {
		texts[i] = p.Text
	}
	vectors, err := u.set.vectors(ctx, texts)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	u.set.queries.note(err)
	if err != nil {
		return false, err
	}
	done, err := u.store.SetVectors(ctx, pending, vectors)
	if err != nil {
		return false, err
	}
	if done == 0 {
		return false, errNoProgress
	}
	u.set.touch(u)
	if len(pending) < embed.Batch {
		_, err = u.Index(ctx)
	}
	return len(pending) == embed.Batch, err
}

// errNoProgress means that all passages of a batch changed while they were
// embedded.
var errNoProgress = errors.New("the passages changed meanwhile")

// plain is a text that every working embedder accepts.
const plain = "hello"

// vectors embeds texts. A text that the embedder refuses gets no vector; the others
// do.
func (s *Set) vectors(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := s.opts.Embedder.Embed(ctx, texts)
	if !errors.Is(err, embed.ErrRefused) {
		return vectors, err
	}
	if _, err := s.opts.Embedder.Embed(ctx, []string{plain}); err != nil {
		return nil, err // it refuses every text
	}
	vectors = make([][]float32, len(texts))
	for i, text := range texts {
		one, err := s.opts.Embedder.Embed(ctx, []string{text})
		if errors.Is(err, embed.ErrRefused) {
			s.opts.Logger.Warn("the embedder refused a text: it is found by its words only", "bytes", len(text), "error", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		vectors[i] = one[0]
	}
	return vectors, nil
}
