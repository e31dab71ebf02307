package pipeline

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/sdk/tool"
)

// slots bounds the concurrent calls of each plugin, tool and user. A queue exists only while a call
// runs or waits in it.
type slots struct {
	mu     sync.Mutex // guards queues and what is in them
	queues map[slotKey]*queue
}

// slotKey identifies a queue.
type slotKey struct {
	plugin string // "" for the calls of one user to all plugins
	tool   string // "" for the plugin as a whole
	user   string // "" for the calls of all users
}

// bound is how many calls may run at the same time in a queue; a size of 0 is no bound. A reload or
// another credential may change the size.
type bound struct {
	slotKey

	size int
}

// session identifies the calls of one conversation, over all front ends.
type session struct{ user, name string }

// queue holds the calls that run or wait for a place. When a place is free, the user with the
// fewest running calls is next; of several, the one whose last call began first; and of one user the
// call that has waited for longest.
type queue struct {
	running int
	of      map[string]int // running calls by user
	begun   int            // calls that have begun
	last    map[string]int // begun at the last call of each user
	waiting []*waiter
}

// usersWaiting is how many users together may fill a queue.
const usersWaiting = 4

// maxLast bounds the users whose last calls a queue remembers.
const maxLast = 10_000

// begin notes a call of a user that takes a place.
func (q *queue) begin(user string) {
	if len(q.last) >= maxLast {
		clear(q.last)
	}
	q.begun++
	q.of[user]++
	q.last[user] = q.begun
}

// waiter is a call that waits for a place.
type waiter struct {
	user    string
	size    int           // of the queue, for it
	granted chan struct{} // closed when it has a place
}

// slot waits for the call's turn: first behind others of its user; then behind calls that touch the
// same things; then at the tool, so that calls of a busy tool do not block others of the plugin; then
// at the plugin. release frees the places.
func (p *Pipeline) slot(ctx context.Context, c *call) (release func(), err error) {
	leaveUser, err := p.enter(ctx, c, p.boundOfUser(c))
	if err != nil {
		return nil, err
	}
	leaveTurn, err := p.takeTurn(ctx, c)
	if err != nil {
		leaveUser()
		return nil, err
	}
	leave, err := p.enter(ctx, c,
		bound{slotKey{plugin: c.entry.Plugin, tool: c.entry.Spec.Name, user: ownerOf(c)}, c.entry.Spec.MaxConcurrency}, p.boundOfPlugin(c))
	if err != nil {
		leaveTurn()
		leaveUser()
		return nil, err
	}
	return func() { leave(); leaveTurn(); leaveUser() }, nil
}

// enter takes a place in each queue, in order. leave frees them.
func (p *Pipeline) enter(ctx context.Context, c *call, bounds ...bound) (leave func(), err error) {
	var entered []slotKey
	leave = func() {
		for _, key := range slices.Backward(entered) {
			p.slots.leave(key, c.Caller.User)
		}
	}
	for _, b := range bounds {
		if b.size <= 0 {
			continue
		}
		if err := p.enterOne(ctx, c, b); err != nil {
			leave()
			return nil, err
		}
		entered = append(entered, b.slotKey)
	}
	return leave, nil
}

// boundOfPlugin bounds the calls of the call's plugin. The host's own tools are bounded only one by
// one, so that calls that wait for people do not block others.
func (p *Pipeline) boundOfPlugin(c *call) bound {
	b := bound{slotKey{plugin: c.entry.Plugin, user: ownerOf(c)}, p.opts.PluginConcurrency}
	if c.entry.OfHost() {
		b.size = 0
	}
	return b
}

// boundOfUser bounds the calls of the call's user.
func (p *Pipeline) boundOfUser(c *call) bound {
	b := bound{slotKey{user: c.Caller.User}, c.Caller.Limits.ConcurrentCalls}
	if c.entry.OfHost() {
		b.size = 0
	}
	return b
}

// ownerOf returns the user whose processes take the call; "" if they are everybody's. The bounds of a
// plugin and its tools are those of a process.
func ownerOf(c *call) string {
	if c.entry.OwnProcesses {
		return c.Caller.User
	}
	return ""
}

// enterOne takes a place in a queue. It waits until a place is free, ctx ends or
// [Options.MaxWait] has passed.
func (p *Pipeline) enterOne(ctx context.Context, c *call, b bound) error {
	w, full := p.slots.join(b, c.Caller.User, p.opts.MaxWaiting)
	switch {
	case full:
		return p.tooBusy(c)
	case w == nil:
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.opts.MaxWait, waitedTooLong(c, p.opts.MaxWait))
	defer cancel()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		p.slots.giveUp(b.slotKey, w)
		return operation.Cause(ctx)
	}
}

// tooBusy is the error of a call with too many others before it.
func (p *Pipeline) tooBusy(c *call) *tool.Error {
	return tool.Errorf(tool.ResourceExhausted, "%s is busy: %d calls wait for their turn already",
		c.entry.Spec.Name, p.opts.MaxWaiting).WithRetry(time.Second)
}

// waitedTooLong is the error of a call whose turn did not come in time.
func waitedTooLong(c *call, wait time.Duration) *tool.Error {
	return tool.Errorf(tool.Unavailable, "%s is busy: the call waited %s for its turn", c.entry.Spec.Name, wait).
		WithRetry(time.Second)
}

// join takes a place in a queue, or adds a waiter. full reports that too many calls wait: of one user
// at most maxWaiting, of all users a few times as many.
func (s *slots) join(b bound, user string, maxWaiting int) (w *waiter, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[b.slotKey]
	if !ok {
		q = &queue{of: make(map[string]int), last: make(map[string]int)}
		s.queues[b.slotKey] = q
	}
	if q.running < b.size {
		q.running++
		q.begin(user)
		return nil, false
	}
	own := 0
	for _, other := range q.waiting {
		if other.user == user {
			own++
		}
	}
	if own >= maxWaiting || len(q.waiting) >= usersWaiting*maxWaiting {
		return nil, true
	}
	w = &waiter{user: user, size: b.size, granted: make(chan struct{})}
	q.waiting = append(q.waiting, w)
	return w, false
}

// leave frees a place, and gives it to the next call.
func (s *slots) leave(key slotKey, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[key]
	if q.of[user]--; q.of[user] == 0 {
		delete(q.of, user)
	}
	q.running--
	for next := q.next(); next != nil && q.running < next.size; next = q.next() {
		q.waiting = slices.DeleteFunc(q.waiting, func(w *waiter) bool { return w == next })
		q.running++
		q.begin(next.user)
		close(next.granted)
	}
	if q.running == 0 && len(q.waiting) == 0 {
		delete(s.queues, key)
	}
}

// next returns the waiter that is next, or nil.
func (q *queue) next() (next *waiter) {
	for _, w := range q.waiting {
		if next == nil || cmp.Or(cmp.Compare(q.of[w.user], q.of[next.user]), cmp.Compare(q.last[w.user], q.last[next.user])) < 0 {
			next = w
		}
	}
	return next
}

// giveUp removes a waiter. If it has got a place in the meantime, it frees the place.
func (s *slots) giveUp(key slotKey, w *waiter) {
	s.mu.Lock()
	q := s.queues[key]
	before := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(other *waiter) bool { return other == w })
	removed := len(q.waiting) < before
	s.mu.Unlock()
	if !removed {
		s.leave(key, w.user)
	}
}
