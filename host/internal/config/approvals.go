package config

import "time"

// Approvals bound how long a person has to answer.
type Approvals struct {
	// Timeout is how long a question stays open; then the call is refused.
	// From 10 seconds to 24 hours.
	Timeout time.Duration `reload:"restart approvals.timeout"`
	// Patience is how long a client waits until it gets the answer that the call
	// is pending; 0 means that it does not wait. At most 10 minutes, and never
	// more than Timeout.
	Patience time.Duration `reload:"restart approvals.patience"`
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
				d.mistake(block.Patience.Expr.Range(), "Patience beyond the timeout",
					"The question closes after %v (timeout). Expected at most that for patience.", a.Timeout)
			}
			a.Patience = patience
		}
	}
	return a
}
