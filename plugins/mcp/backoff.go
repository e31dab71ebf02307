package main

import "time"

const (
	// firstPause is the pause after the second failure in a row; each further one doubles it.
	firstPause = time.Second
	maxPause   = time.Minute
)

// backoff says when a server that fails may be started again. The zero backoff allows it at once.
type backoff struct {
	failures int
	until    time.Time
}

// failed notes a failure: a start that fails, or a server that ends.
func (b *backoff) failed(now time.Time) {
	b.failures++
	if b.failures == 1 {
		return // a server that ends once is started again with the next call
	}
	pause := maxPause
	if doubled := b.failures - 2; doubled < 6 {
		pause = min(firstPause<<doubled, maxPause)
	}
	b.until = now.Add(pause)
}

// works notes a call that the server has answered.
func (b *backoff) works() { *b = backoff{} }

// wait returns how long to wait before the next start.
func (b *backoff) wait(now time.Time) time.Duration { return max(0, b.until.Sub(now)) }
