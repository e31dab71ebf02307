package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The processes of all users and sessions share the room that [Plugin.MaxInstances] and
// [Plugin.MaxPerUser] leave, and those of all plugins the memory that [Options.InstancesMemory]
// leaves. A pool that needs another process waits for its turn: first for room among the processes of
// its plugin, then for memory. The turn of the user with the fewest processes, or with the least
// memory, is next, and the process that has been idle for longest makes room.

// maxTurns bounds the sessions of one user that wait for room.
const maxTurns = 32

// turn is a pool's wait for room.
type turn struct {
	pool *pool
	// claim is for the memory; nil while the turn waits for room among the processes of the plugin.
	claim   *claim
	granted chan struct{} // closed when the pool may start a process
	waiting int           // calls that wait for it
}

// awaitRoom waits until the pool may start a process, and returns the claim for its memory. The claim
// is nil if a process starts already, if another call has used the turn, or if waits is nil. The
// caller holds mu; awaitRoom releases it while it waits. The error is for callers.
func (p *pool) awaitRoom(ctx context.Context, waits notify) (*claim, error) {
	if waits == nil || p.starting != nil {
		return nil, nil
	}
	t := p.turn
	if t == nil {
		t = &turn{pool: p, granted: make(chan struct{})}
		p.turn = t
		if p.plugin.Scope == Shared {
			p.claimMemory(t)
		} else {
			p.queue = append(p.queue, t)
		}
		p.admit()
		if n := p.turnsOf(p.of.user); n > maxTurns && t.claim == nil {
			p.giveBack(t)
			return nil, p.unavailable(time.Second, nil, "is busy: %d sessions of this user wait for a process", n-1)
		}
	}
	if !isClosed(t.granted) {
		if err := p.awaitTurn(ctx, t, waits); err != nil {
			return nil, err
		}
	}
	if p.turn != t {
		return nil, nil
	}
	p.turn = nil
	return t.claim, nil
}

// awaitTurn waits until a turn is granted. The caller holds mu; awaitTurn releases it while it waits.
func (p *pool) awaitTurn(ctx context.Context, t *turn, waits notify) error {
	t.waiting++
	p.waiting++
	why := fmt.Sprintf("waits until the plugin %q has room for another process", p.plugin.Name)
	if t.claim != nil {
		why = fmt.Sprintf("waits until there is memory for another process of the plugin %q", p.plugin.Name)
	}
	p.mu.Unlock()
	timer := time.NewTimer(p.s.timing.room)
	defer timer.Stop()
	waits(why)
	var err error
	late := false
	select {
	case <-t.granted:
	case <-timer.C:
		late = true
	case <-ctx.Done():
		err = contextError(ctx, errors.New("the call waited for a process of the plugin"))
	case <-p.closing:
		err = p.unavailable(0, errClosed, "is stopped: the host is stopping")
	}
	p.mu.Lock()
	p.waiting--
	t.waiting--
	switch {
	case late && t.claim != nil:
		err = p.unavailable(time.Second, nil, "cannot start another process: the processes of all plugins have as much memory as they may have, and all have calls")
	case late:
		err = p.unavailable(time.Second, nil, "is busy: all of its %d processes have calls", p.plugin.MaxInstances)
	}
	if err != nil && t.waiting == 0 && p.turn == t {
		p.giveBack(t)
	}
	return err
}

// claimMemory asks for the memory of the process that a turn is for. The caller holds mu.
func (p *pool) claimMemory(t *turn) {
	t.claim = &claim{user: p.of.user, size: p.plugin.Limits.Memory, granted: t.granted}
	p.s.memory.ask(t.claim)
}

// giveBack ends the turn of the pool. No call uses it. The caller holds mu.
func (p *pool) giveBack(t *turn) {
	p.turn = nil
	if t.claim != nil {
		p.s.memory.release(t.claim)
	}
	p.queue = slices.DeleteFunc(p.queue, func(other *turn) bool { return other == t })
	p.admit()
}

// skipTurn ends the wait of the pool's calls, because it gets a process otherwise, or never. The caller
// holds mu.
func (p *pool) skipTurn() {
	t := p.turn
	if t == nil {
		return
	}
	p.turn = nil
	p.queue = slices.DeleteFunc(p.queue, func(other *turn) bool { return other == t })
	if t.claim == nil || p.s.memory.release(t.claim) {
		close(t.granted)
	}
}

// admit lets the turns that there is room for claim their memory, and makes room. The caller holds mu.
func (m *manager) admit() {
	for len(m.queue) > 0 && !m.closed() && !m.replaced {
		next := m.nextTurn()
		if next == nil {
			break
		}
		m.queue = slices.DeleteFunc(m.queue, func(t *turn) bool { return t == next })
		next.pool.claimMemory(next)
	}
	m.seekRoom()
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

// turnsOf returns how many turns of a user wait for room among the processes of the plugin. The caller
// holds mu.
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
		spare, ends := p.spare()
		ending += ends
		if spare != nil && (idle == nil || spare.lastUsed.Before(idle.lastUsed)) {
			idle, from = spare, p
		}
	}
	if idle != nil && ending < wanted {
		idle.why = "another user or session needed its room"
		from.retire(idle)
	}
}

// spare returns the process of the pool that may end for another one, nil if there is none: it has no
// calls, and none is about to use it. ending is how many processes without calls end already. The
// caller holds mu.
func (p *pool) spare() (idle *instance, ending int) {
	for _, i := range p.instances {
		switch {
		case i.calls > 0:
		case i.stopping:
			ending++
		case p.callers == 0:
			idle = i
		}
	}
	return idle, ending
}

// processes returns how many processes the pool has, is starting or has room for. The caller holds
// mu.
func (p *pool) processes() int {
	n := len(p.instances)
	if p.starting != nil || p.turn != nil && p.turn.claim != nil {
		n++
	}
	return n
}
