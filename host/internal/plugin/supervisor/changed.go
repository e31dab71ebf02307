package supervisor

import (
	"context"
	"sync"

	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/sdk/tool"
)

// changesAtOnce is how many changes of its tools take effect at once; then one does in each
// [timing.change]. A publication costs the host and its clients much more than the plugin.
const changesAtOnce = 3

// changes are the tools that a process has sent and the host has not taken. Only the last ones count.
type changes struct {
	arrived chan struct{} // has room for one signal

	mu     sync.Mutex // guards the following
	latest []tool.Spec
	taken  chan struct{} // closed when latest was taken; nil if none waits
}

func newChanges() *changes { return &changes{arrived: make(chan struct{}, 1)} }

// put replaces the tools that wait. taken is closed when these or later ones were taken.
func (c *changes) put(tools []tool.Spec) (taken <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest = tools
	if c.taken == nil {
		c.taken = make(chan struct{})
	}
	select {
	case c.arrived <- struct{}{}:
	default: // it has a signal
	}
	return c.taken
}

// waiting returns the tools that wait, and whether any do.
func (c *changes) waiting() ([]tool.Spec, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest, c.taken != nil
}

// take takes the tools that wait. done says so to the plugin.
func (c *changes) take() (tools []tool.Spec, done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tools, taken := c.latest, c.taken
	c.latest, c.taken = nil, nil
	return tools, func() { close(taken) }
}

// changed returns the function that takes changes of the tools of a process. Only a process that
// describes the plugin for everybody may change them: a user may have influenced what the user's own
// process offers.
func (p *pool) changed(i *instance) process.ChangedFunc {
	if p != p.base {
		return func([]tool.Spec) (<-chan struct{}, *tool.Error) {
			return nil, tool.Errorf(tool.PermissionDenied, "a process of one user or session cannot change the tools of its plugin").
				WithHint("the tools of a plugin must not depend on its user")
		}
	}
	return func(tools []tool.Spec) (<-chan struct{}, *tool.Error) { return i.changes.put(tools), nil }
}

// takeChanges publishes the changes of the tools of a process until ctx ends.
func (p *pool) takeChanges(ctx context.Context, i *instance) {
	limit := rate.NewLimiter(rate.Every(p.s.timing.change), changesAtOnce)
	told := false
	for {
		select {
		case <-i.changes.arrived:
		case <-ctx.Done():
			return
		}
		tools, waits := i.changes.waiting()
		if !waits {
			continue // they were taken with those before
		}
		if differ := p.publication(i.digest, tools).Digest != *i.revision.Load(); differ {
			if !told && limit.Tokens() < 1 {
				p.log.Warn("the plugin changes its tools often: of several changes the last one counts", "one_in", p.s.timing.change)
				told = true
			}
			if limit.Wait(ctx) != nil { // ctx has ended
				return
			}
		}
		tools, done := i.changes.take()
		p.change(i, tools)
		done()
	}
}

// change publishes tools of a process if they differ from those before.
func (p *pool) change(i *instance, tools []tool.Spec) {
	now := p.publication(i.digest, tools)
	p.mu.Lock()
	same := *i.revision.Load() == now.Digest
	if i.stopping || p.replaced || p.closed() || same {
		p.mu.Unlock()
		return
	}
	i.revision.Store(&now.Digest)
	p.mu.Unlock()
	saved := *i.saved
	saved.Tools, saved.Sound = tools, process.FileID{}
	i.saved = &saved
	p.log.Info("the plugin has changed its tools", "tools", len(tools))
	p.keep(&saved) // what looks at publications may read it
	if p.publish(now) {
		p.keepSound(&saved)
	}
}
