package supervisor

import (
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// backoffBase is doubled with every failure in a row, up to backoffCap.
	backoffBase = 250 * time.Millisecond
	backoffCap  = 30 * time.Second
	// backoffReset is how long a plugin must be ready for its next crash to
	// count as the first again.
	backoffReset = time.Minute
)

// Restart says when a plugin that crashes again and again is kept off for a while: its
// circuit breaker. The zero value of each field is its default.
type Restart struct {
	// MaxCrashes within Within open the breaker; 0 means 5, and 2 minutes.
	MaxCrashes int
	Within     time.Duration
	// Pause is how long the plugin then stays off; 0 means 30 seconds. After it the
	// next call starts the plugin. If it crashes again within a minute, the pause is
	// twice as long, up to MaxPause; 0 means 15 minutes.
	Pause, MaxPause time.Duration
}

func (r Restart) withDefaults() Restart {
	if r.MaxCrashes <= 0 {
		r.MaxCrashes = 5
	}
	if r.Within <= 0 {
		r.Within = 2 * time.Minute
	}
	if r.Pause <= 0 {
		r.Pause = 30 * time.Second
	}
	if r.MaxPause <= 0 {
		r.MaxPause = 15 * time.Minute
	}
	return r
}

// reason completes "the plugin ..." for one whose breaker has opened some times in a row.
func (r Restart) reason(opened int) string {
	if opened > 1 {
		return "crashed again when it was started after a pause"
	}
	return fmt.Sprintf("crashed %d times within %v", r.MaxCrashes, r.Within)
}

// pauseAfter is how long the plugin stays off when the breaker has opened some times in
// a row before.
func (r Restart) pauseAfter(opened int) time.Duration {
	pause := r.Pause
	for range opened {
		if pause >= r.MaxPause/2 {
			return r.MaxPause
		}
		pause *= 2
	}
	return min(pause, r.MaxPause)
}

// restarts decides when a plugin that failed may start again. It is a value
// without a clock: whoever owns it says what time it is.
type restarts struct {
	recent []time.Time // crashes within Restart.Within, oldest first
	row    int         // failures in a row, without backoffReset between them
	until  time.Time   // no start before this
	// broken says that the breaker is open until then, and half-open from then on;
	// opened is how often it has opened in a row.
	broken bool
	opened int
}

// crashed records a crash after the plugin was ready for the given time, 0 if
// it never was.
func (r *restarts) crashed(now time.Time, ready time.Duration, limits Restart) {
	if ready >= backoffReset {
		r.row, r.opened, r.broken = 0, 0, false
	}
	r.row++
	for len(r.recent) > 0 && now.Sub(r.recent[0]) >= limits.Within {
		r.recent = r.recent[1:]
	}
	r.recent = append(r.recent, now)
	if r.broken || len(r.recent) >= limits.MaxCrashes {
		r.until = now.Add(limits.pauseAfter(r.opened))
		r.broken = true
		r.opened++
		return
	}
	if r.row == 1 && ready > 0 {
		r.until = now // it did work: one crash is no reason to wait
		return
	}
	r.backOff(now)
}

// failed records a start that failed for a reason that may lie with the host: it is
// tried again later, and never opens the breaker.
func (r *restarts) failed(now time.Time) {
	r.row++
	r.backOff(now)
}

func (r *restarts) backOff(now time.Time) {
	// Full jitter: hosts whose plugins died of one cause do not return as one.
	r.until = now.Add(rand.N(r.ceiling()) + 1) //nolint:gosec // it need not be unpredictable
}

// ceiling is the longest wait after the failures so far.
func (r *restarts) ceiling() time.Duration {
	// 2^7 * 250ms is above the cap; a larger shift would overflow.
	return min(backoffBase<<min(r.row-1, 7), backoffCap)
}

// wait is how long no start is allowed; 0 means that one is.
func (r *restarts) wait(now time.Time) time.Duration { return max(r.until.Sub(now), 0) }

// open reports whether the breaker keeps the plugin off.
func (r *restarts) open(now time.Time) bool { return r.broken && r.wait(now) > 0 }
