package supervisor

import (
	"math/rand/v2"
	"time"
)

const (
	// backoffBase is doubled with every crash in a row, up to backoffCap.
	backoffBase = 250 * time.Millisecond
	backoffCap  = 30 * time.Second
	// backoffReset is how long a plugin must be ready for its next crash to
	// count as the first again.
	backoffReset = time.Minute

	// breakerCrashes within breakerWindow keep a plugin off until an operator
	// restarts it or its binary changes.
	breakerCrashes = 5
	breakerWindow  = 2 * time.Minute
)

// restarts decides when a plugin that crashed may start again. It is a value
// without a clock: whoever owns it says what time it is.
type restarts struct {
	recent []time.Time // crashes within breakerWindow, oldest first
	row    int         // crashes in a row, without backoffReset between them
	until  time.Time   // no start before this
	broken bool
}

// crashed records a crash after the plugin was ready for the given time, 0 if
// it never was.
func (r *restarts) crashed(now time.Time, ready time.Duration) {
	if ready >= backoffReset {
		r.row = 0
	}
	r.row++
	for len(r.recent) > 0 && now.Sub(r.recent[0]) >= breakerWindow {
		r.recent = r.recent[1:]
	}
	r.recent = append(r.recent, now)
	r.broken = len(r.recent) >= breakerCrashes
	if r.row == 1 && ready > 0 {
		r.until = now // it did work: one crash is no reason to wait
		return
	}
	// Full jitter: hosts whose plugins died of one cause do not return as one.
	r.until = now.Add(rand.N(r.ceiling()) + 1) //nolint:gosec // it need not be unpredictable
}

// ceiling is the longest wait after the crashes so far.
func (r *restarts) ceiling() time.Duration {
	// 2^7 * 250ms is above the cap; a larger shift would overflow.
	return min(backoffBase<<min(r.row-1, 7), backoffCap)
}

// wait is how long no start is allowed; 0 means that one is.
func (r *restarts) wait(now time.Time) time.Duration { return max(r.until.Sub(now), 0) }
