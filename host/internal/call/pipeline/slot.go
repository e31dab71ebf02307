package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/sdk/tool"
)

// slots bounds the concurrent calls of each plugin and tool. A queue exists only while a call
// runs or waits in it.
type slots struct {
	mu     sync.Mutex // guards queues and their users
	queues map[slotKey]*queue
}

// slotKey identifies a queue. The size is part of the key: a tool that is published again with
// another bound gets another queue.
type slotKey struct {
	plugin string
	tool   string // "" for the plugin as a whole
	size   int
}

// session identifies the calls of one conversation, over all front ends.
type session struct{ user, name string }

type queue struct {
	places chan struct{} // full when size calls run
	users  int           // calls that run or wait
}

// slot waits for the call's turn: first behind calls that touch the same things; then at the
// tool, so that calls of a busy tool do not block others of the plugin; then at the plugin.
// release frees the places.
func (p *Pipeline) slot(ctx context.Context, c *call) (release func(), err error) {
	leave, err := p.takeTurn(ctx, c)
	if err != nil {
		return nil, err
	}
	entered := make([]slotKey, 0, 2)
	release = func() {
		for _, key := range slices.Backward(entered) {
			p.slots.leave(key)
		}
		leave()
	}
	for _, key := range []slotKey{
		{plugin: c.entry.Plugin, tool: c.entry.Spec.Name, size: c.entry.Spec.MaxConcurrency},
		{plugin: c.entry.Plugin, size: p.pluginSize(c)},
	} {
		if err := p.enter(ctx, c, key); err != nil {
			release()
			return nil, err
		}
		entered = append(entered, key)
	}
	return release, nil
}

// pluginSize returns how many calls of the call's plugin may run at the same time; 0 means any
// number. The host's own tools are bounded only one by one, so that calls that wait for people
// do not block others.
func (p *Pipeline) pluginSize(c *call) int {
	if c.entry.OfHost() {
		return 0
	}
	return p.opts.PluginConcurrency
}

// enter takes a place in a queue. It waits until a place is free, ctx ends or
// [Options.MaxWait] has passed. A queue of size 0 has no bound.
func (p *Pipeline) enter(ctx context.Context, c *call, key slotKey) error {
	if key.size <= 0 {
		return nil
	}
	q := p.slots.join(key, p.opts.MaxWaiting)
	if q == nil {
		return p.tooBusy(c)
	}
	select {
	case q.places <- struct{}{}:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.opts.MaxWait, waitedTooLong(c, p.opts.MaxWait))
	defer cancel()
	select {
	case q.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		p.slots.quit(key, q)
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

// join adds a call to a queue. It returns nil if too many calls wait in it.
func (s *slots) join(key slotKey, maxWaiting int) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[key]
	if !ok {
		q = &queue{places: make(chan struct{}, key.size)}
		s.queues[key] = q
	}
	if q.users == key.size+maxWaiting {
		return nil
	}
	q.users++
	return q
}

// leave frees a place.
func (s *slots) leave(key slotKey) {
	if key.size <= 0 {
		return
	}
	s.mu.Lock()
	q := s.queues[key]
	s.mu.Unlock()
	<-q.places
	s.quit(key, q)
}

// quit removes a call from a queue.
func (s *slots) quit(key slotKey, q *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(s.queues, key)
	}
}
