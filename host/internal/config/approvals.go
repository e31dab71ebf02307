package config

import "time"

// Approvals say how long people have to answer.
type Approvals struct {
	// Timeout is how long a question stays open; then the call is refused.
	// From 10 seconds to 24 hours.
	Timeout time.Duration
	// Patience is how long a client is kept waiting before it is told that the
	// call is pending; 0 tells it at once. At most 10 minutes, and never more
	// than Timeout.
	Patience time.Duration
}

const (
	defaultTimeout  = 10 * time.Minute
	defaultPatience = 45 * time.Second
)

// approvals reads the approvals block.
func (d *decoder) approvals(blocks []approvalsBlock) Approvals {
	a := Approvals{Timeout: defaultTimeout, Patience: defaultPatience}
	for _, block := range blocks {
		timeout, ok := d.durationWithin(block.Timeout, 10*time.Second, day, `a duration from "10s" to "24h"`)
		if ok {
			a.Timeout = timeout
			a.Patience = min(a.Patience, timeout)
		}
		if patience, ok := d.durationWithin(block.Patience, 0, 10*time.Minute, `a duration from "0s" to "10m"`); ok {
			if patience > a.Timeout {
				d.mistake(block.Patience.Expr.Range(), "Patience beyond the time-out",
					"Nobody waits longer than until the question is closed, which is after %v (timeout). Expected no more for patience.", a.Timeout)
			}
			a.Patience = patience
		}
	}
	return a
}
