package supervisor

import (
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// memory bounds the sum of the memory limits of all processes. Each process has a claim from before
// its start until its end. The claims of the host itself, which starts processes to learn their tools,
// for a reload or because they are eager, are granted at once.
type memory struct {
	mu     sync.Mutex               // guards the rest; taken after the mu of a manager
	size   tool.ByteSize            // 0 means no bound
	used   tool.ByteSize            // by the claims that are granted and not released
	ending tool.ByteSize            // the part of used whose processes are about to end
	of     map[string]tool.ByteSize // used by user; processes of everybody count for nobody
	queue  []*claim                 // that wait, in the order of their wait
	// making is set while idle processes are being ended, again if there may be further ones.
	making, again bool
}

// claim is for the memory of one process.
type claim struct {
	user    string
	size    tool.ByteSize
	granted chan struct{} // closed when it is granted
	// The process is about to end, or has ended. The memory's mu guards these.
	ending, released bool
}

// ask adds a claim, and grants it if there is memory and no other user is next.
func (m *memory) ask(c *claim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = append(m.queue, c)
	m.grant()
}

// take grants a new claim, whether there is memory or not.
func (m *memory) take(user string, size tool.ByteSize) *claim {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &claim{user: user, size: size, granted: make(chan struct{})}
	m.give(c)
	return c
}

// release ends a claim, and grants others. waited reports whether it was not granted yet.
func (m *memory) release(c *claim) (waited bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.queue, c); i >= 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
		m.grant()
		return true
	}
	m.used -= c.size
	if c.released = true; c.ending {
		m.ending -= c.size
	}
	m.count(c.user, -c.size)
	m.grant()
	return false
}

// end notes that the process of a claim is about to end: it is stopping and has no calls. Its last call
// may have been lost with the process, after the claim was released.
func (m *memory) end(c *claim) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !c.released {
		c.ending = true
		m.ending += c.size
	}
}

// resize changes the bound.
func (m *memory) resize(size tool.ByteSize) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.size = size
	m.grant()
}

// grant grants the claims that there is memory for. The user with the least memory is next: no claim
// overtakes that user's because it is smaller. The caller holds mu.
func (m *memory) grant() {
	for next := m.next(); next != nil && m.fits(next); next = m.next() {
		m.queue = slices.DeleteFunc(m.queue, func(c *claim) bool { return c == next })
		m.give(next)
	}
}

func (m *memory) give(c *claim) {
	m.used += c.size
	m.count(c.user, c.size)
	close(c.granted)
}

// count adds to what a user has. The caller holds mu.
func (m *memory) count(user string, size tool.ByteSize) {
	if user == "" {
		return
	}
	if m.of[user] += size; m.of[user] == 0 {
		delete(m.of, user)
	}
}

func (m *memory) fits(c *claim) bool { return m.size == 0 || m.used+c.size <= m.size }

// next returns the claim that is next, or nil. The caller holds mu.
func (m *memory) next() (next *claim) {
	for _, c := range m.queue {
		if next == nil || m.of[c.user] < m.of[next.user] {
			next = c
		}
	}
	return next
}

// lacks reports whether a claim waits that still lacks memory when the processes that are about to end
// have ended.
func (m *memory) lacks() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	need := m.used - m.ending
	for _, c := range m.queue {
		need += c.size
	}
	return len(m.queue) > 0 && need > m.size
}

// wantsRoom reports whether claims wait, and the caller must call [Supervisor.makeRoom]. It does so
// once until that is done.
func (m *memory) wantsRoom() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 {
		return false
	}
	if m.making {
		m.again = true
		return false
	}
	m.making = true
	return true
}

// madeRoom reports whether nothing has changed since idle processes were last looked for.
func (m *memory) madeRoom() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.making, m.again = m.again, false
	return !m.making
}

// BoundMemory changes [Options.InstancesMemory]. Processes that run continue.
func (s *Supervisor) BoundMemory(size tool.ByteSize) { s.memory.resize(size) }

// makeRoom ends idle processes while calls wait for memory. It holds no lock, since the processes are
// those of all plugins.
func (s *Supervisor) makeRoom() {
	for {
		for s.endIdle() {
		}
		if s.memory.madeRoom() {
			return
		}
	}
}

// endIdle asks the process of any plugin that has been idle for longest to end. It returns false if
// enough of them end already, or none is idle.
func (s *Supervisor) endIdle() bool {
	var longest *pool
	var since time.Time
	for _, m := range s.everyManager() {
		m.mu.Lock()
		for _, p := range m.pools() {
			idle, _ := p.spare()
			if idle != nil && !p.eager() && (longest == nil || idle.lastUsed.Before(since)) {
				longest, since = p, idle.lastUsed
			}
		}
		m.mu.Unlock()
	}
	if longest == nil || !s.memory.lacks() {
		return false
	}
	longest.mu.Lock()
	defer longest.mu.Unlock()
	longest.yieldMemory()
	return true
}

// yieldMemory asks the process of the pool to end if it is idle and a call waits for its memory. The
// caller holds mu.
func (p *pool) yieldMemory() {
	if idle, _ := p.spare(); idle != nil && !p.eager() && p.s.memory.lacks() {
		idle.why = "another process needed its memory"
		p.retire(idle)
	}
}

// seekRoom has idle processes end if calls wait for memory. The caller holds mu.
func (m *manager) seekRoom() {
	if !m.closed() && m.s.memory.wantsRoom() {
		m.s.tasks.Go(m.s.makeRoom) // ends when enough processes end; Close waits
	}
}

// free ends the claim of a process that has ended. It is called by a task.
func (p *pool) free(c *claim) {
	p.s.memory.release(c)
	if p.s.memory.wantsRoom() {
		p.s.tasks.Go(p.s.makeRoom) // ends when enough processes end; Close waits
	}
}
