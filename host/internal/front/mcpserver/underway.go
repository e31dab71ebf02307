package mcpserver

import (
	"context"
	"sync"
)

// underWay holds what cancels the calls of one client that have not ended: the
// SDK shields them from the end of its session. The zero value is ready.
type underWay struct {
	mu      sync.Mutex // guards everything below
	cancels map[int]context.CancelCauseFunc
	next    int
	ended   error // the cause, for calls that begin later
}

// begin returns a context that ends with cancel too, and what to call when the
// call has ended.
func (u *underWay) begin(ctx context.Context) (_ context.Context, done func()) {
	ctx, stop := context.WithCancelCause(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended != nil {
		stop(u.ended)
		return ctx, func() {}
	}
	if u.cancels == nil {
		u.cancels = map[int]context.CancelCauseFunc{}
	}
	u.next++
	id := u.next
	u.cancels[id] = stop
	return ctx, func() {
		stop(nil)
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.cancels, id)
	}
}

// cancel ends all calls under way, and those that begin later.
func (u *underWay) cancel(cause error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = cause
	for _, stop := range u.cancels {
		stop(cause)
	}
}
