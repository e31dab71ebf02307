package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The processes of all users and sessions share the room that [Plugin.MaxInstances] and
// [Plugin.MaxPerUser] leave. A pool that needs another process waits for its turn. The turn of
// the user with the fewest processes is next, and the process that has been idle for longest
// makes room.

// maxTurns bounds the sessions of one user that wait for room.
const maxTurns = 32

// turn is a pool's wait for room.
type turn struct {
	pool    *pool
	granted chan struct{} // closed when the pool may start a process
	waiting int           // calls that wait for it
}

// awaitRoom waits until the pool may start a process, and reserves the room for it. The caller
// holds mu; awaitRoom releases it while it waits. The error is for callers.
func (p *pool) awaitRoom(ctx context.Context, waits notify) error {
	if p == p.base || p.starting != nil || p.reserved {
		return nil
	}
	if p.turn == nil {
		p.turn = &turn{pool: p, granted: make(chan struct{})}
		p.queue = append(p.queue, p.turn)
		p.admit()
		if p.turn == nil {
			return nil
		}
		if n := p.turnsOf(p.of.user); n > maxTurns {
			p.giveBack(p.turn)
			return p.unavailable(time.Second, nil, "is busy: %d sessions of this user wait for a process", n-1)
		}
	}
	t := p.turn
	t.waiting++
	p.waiting++
	p.mu.Unlock()
	timer := time.NewTimer(p.s.timing.room)
	defer timer.Stop()
	if waits != nil {
		waits(fmt.Sprintf("waits until the plugin %q has room for another process", p.plugin.Name))
	}
	var err error
	select {
	case <-t.granted:
	case <-timer.C:
		err = p.unavailable(time.Second, nil, "is busy: all of its %d processes have calls", p.plugin.MaxInstances)
	case <-ctx.Done():
		err = contextError(ctx, errors.New("the call waited for a process of the plugin"))
	case <-p.closing:
		err = p.unavailable(0, errClosed, "is stopped: the host is stopping")
	}
	p.mu.Lock()
	p.waiting--
	t.waiting--
	if err != nil && t.waiting == 0 {
		p.giveBack(t)
	}
	return err
}

// giveBack ends a turn that no call waits for. The caller holds mu.
func (p *pool) giveBack(t *turn) {
	if p.turn == t {
		p.turn = nil
		p.queue = slices.DeleteFunc(p.queue, func(other *turn) bool { return other == t })
	}
	p.reserved = false
	p.admit()
}

// admit grants the turns that there is room for, and makes room. The caller holds mu.
func (m *manager) admit() {
	for len(m.queue) > 0 && !m.closed() && !m.replaced {
		next := m.nextTurn()
		if next == nil {
			return
		}
		m.queue = slices.DeleteFunc(m.queue, func(t *turn) bool { return t == next })
		next.pool.turn, next.pool.reserved = nil, true
		close(next.granted)
	}
}

// nextTurn returns the turn that is next and that there is room for, or nil. Then it has asked idle
// processes to end. The caller holds mu.
func (m *manager) nextTurn() (next *turn) {
	processes, of := 0, make(map[string]int)
	for _, p := range m.scoped {
		processes += p.processes()
		of[p.of.user] += p.processes()
	}
	may := 0 // turns of users who may have another process
	for _, t := range m.queue {
		user := t.pool.of.user
		if m.plugin.Scope == PerSession && of[user] >= m.plugin.MaxPerUser {
			m.evict(m.turnsOf(user), func(p *pool) bool { return p.of.user == user })
			continue
		}
		may++
		if next == nil || of[user] < of[next.pool.of.user] {
			next = t
		}
	}
	if next != nil && processes >= m.plugin.MaxInstances {
		m.evict(may, func(*pool) bool { return true })
		return nil
	}
	return next
}

// turnsOf returns how many turns of a user wait. The caller holds mu.
func (m *manager) turnsOf(user string) (n int) {
	for _, t := range m.queue {
		if t.pool.of.user == user {
			n++
		}
	}
	return n
}

// evict asks the process that has been idle for longest to end, among the pools that may. It does
// nothing while as many of these processes are ending as are wanted. The caller holds mu.
func (m *manager) evict(wanted int, may func(*pool) bool) {
	var idle *instance
	var from *pool
	ending := 0
	for _, p := range m.scoped {
		if !may(p) {
			continue
		}
		for _, i := range p.instances {
			switch {
			case i.calls > 0:
			case i.stopping:
				ending++
			case p.callers > 0: // a call is about to use it
			case idle == nil || i.lastUsed.Before(idle.lastUsed):
				idle, from = i, p
			}
		}
	}
	if idle != nil && ending < wanted {
		idle.why = "another user or session needed its room"
		from.retire(idle)
	}
}

// processes returns how many processes the pool has, is starting or has room for. The caller holds
// mu.
func (p *pool) processes() int {
	n := len(p.instances)
	if p.starting != nil || p.reserved {
		n++
	}
	return n
}
