package pipeline

import (
	"context"
	"sync"
	"time"
)

// clock ends a context when its time is over. It can be stopped, for as long as
// a person is asked.
type clock struct {
	mu      sync.Mutex // guards everything below
	timer   *time.Timer
	left    time.Duration // when it was last started
	started time.Time
	stops   int // how many want it to stand still
	over    bool
}

// withClock returns a context that ends with ctx, or with late as its cause
// when the clock has run for a time. cancel must be called.
func withClock(ctx context.Context, d time.Duration, late error) (context.Context, *clock, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	k := &clock{left: d, started: time.Now()}
	k.timer = time.AfterFunc(d, func() { end(late) })
	return ctx, k, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.over = true
		k.timer.Stop()
		end(nil)
	}
}

// stop makes the clock stand still until start is called, once.
func (k *clock) stop() (start func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stops++; k.stops == 1 {
		k.timer.Stop() // one that has fired has ended the context
		k.left -= time.Since(k.started)
	}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.stops--; k.stops == 0 && !k.over {
			k.started = time.Now()
			k.timer.Reset(k.left)
		}
	}
}
