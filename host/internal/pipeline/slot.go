package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// slots bounds the calls that run at the same time, per plugin and per tool.
// A queue exists only while a call holds or awaits a place in it.
type slots struct {
	mu     sync.Mutex // guards queues and their users
	queues map[slotKey]*queue
}

// slotKey names a queue. Its size is part of the name: a tool that is
// published anew with another bound has a queue of its own.
type slotKey struct {
	plugin string
	tool   string // "" for the plugin as a whole
	size   int
}

type queue struct {
	places chan struct{} // full when size calls run
	users  int           // calls that run or wait
}

// slot waits for the call's turn: first at its tool, so that calls of a busy
// tool do not keep others of the plugin waiting. release gives the places
// back.
func (p *Pipeline) slot(ctx context.Context, c *call) (release func(), err error) {
	ofTool := slotKey{plugin: c.entry.Plugin, tool: c.entry.Spec.Name, size: c.entry.Spec.MaxConcurrency}
	if err := p.enter(ctx, c, ofTool); err != nil {
		return nil, err
	}
	ofPlugin := slotKey{plugin: c.entry.Plugin, size: p.opts.PluginConcurrency}
	if err := p.enter(ctx, c, ofPlugin); err != nil {
		p.slots.leave(ofTool)
		return nil, err
	}
	return func() {
		p.slots.leave(ofPlugin)
		p.slots.leave(ofTool)
	}, nil
}

// enter takes a place in a queue, or waits for one until ctx ends, or for
// [Options.MaxWait]. A queue of size 0 has no bound.
func (p *Pipeline) enter(ctx context.Context, c *call, key slotKey) error {
	if key.size <= 0 {
		return nil
	}
	q := p.slots.join(key, p.opts.MaxWaiting)
	if q == nil {
		return tool.Errorf(tool.ResourceExhausted, "%s is busy: %d calls wait for their turn already",
			c.entry.Spec.Name, p.opts.MaxWaiting).WithRetry(time.Second)
	}
	select {
	case q.places <- struct{}{}:
		return nil
	default:
	}
	tooLong := tool.Errorf(tool.Unavailable, "%s is busy: the call waited %s for its turn", c.entry.Spec.Name, p.opts.MaxWait).
		WithRetry(time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, p.opts.MaxWait, tooLong)
	defer cancel()
	select {
	case q.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		p.slots.quit(key, q)
		return causeOf(ctx)
	}
}

// join counts a call into a queue, or returns nil if too many wait in it.
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

// leave gives a place back.
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

// quit counts a call out of a queue.
func (s *slots) quit(key slotKey, q *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(s.queues, key)
	}
}
