package mcpserver

import (
	"context"
	"sync"
)

// clientCalls cancels the unfinished calls of one client, because the SDK does not end them
// with its session. The zero value is ready to use.
type clientCalls struct {
	mu      sync.Mutex // guards the fields below
	cancels map[int]context.CancelCauseFunc
	next    int
	ended   error // the cause for calls that begin later
}

// begin returns a context that also ends with cancel. The caller must call done when the call
// has ended.
func (c *clientCalls) begin(ctx context.Context) (_ context.Context, done func()) {
	ctx, stop := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		stop(c.ended)
		return ctx, func() {}
	}
	if c.cancels == nil {
		c.cancels = map[int]context.CancelCauseFunc{}
	}
	c.next++
	id := c.next
	c.cancels[id] = stop
	return ctx, func() {
		stop(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.cancels, id)
	}
}

// cancel cancels all calls, including those that begin later.
func (c *clientCalls) cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = cause
	for _, stop := range c.cancels {
		stop(cause)
	}
}
