package pipeline

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// charge holds the tokens that a call has taken.
type charge struct{ buckets []*bucket }

// limitRate refuses a call if the user makes too many calls of a tool with a rate, or too many
// that change something. A call that starts again is charged only once.
func (p *Pipeline) limitRate(c *call) error {
	if c.charged != nil {
		return nil
	}
	now := time.Now()
	var limits []*bucket
	if rate := c.entry.Rate; rate.Calls > 0 {
		limits = append(limits, p.buckets.of(bucketKey{user: c.Caller.User, tool: c.entry.Spec.Name}, rate))
	}
	if actions := cmp.Or(c.Caller.Limits.ActionsPerHour, p.settings.Load().ActionsPerHour); actions > 0 && c.tier != tool.ReadOnly {
		limits = append(limits, p.buckets.of(bucketKey{user: c.Caller.User}, catalog.Rate{Calls: actions, Per: time.Hour}))
	}
	for i, b := range limits {
		wait := b.take(now)
		if wait == 0 {
			continue
		}
		for _, earlier := range limits[:i] {
			earlier.refund()
		}
		return tool.Errorf(tool.RateLimited, "Rate limit exceeded").
			WithHint("%s may be called again in %s", c.entry.Spec.Name, wait.Round(time.Second)).WithRetry(wait)
	}
	c.charged = &charge{limits}
	return nil
}

// refund returns the tokens of a call that was never sent to its plugin. Calls that the policy
// denied are not refunded, so that repeating them has a limit.
func (c *call) refund() {
	if c.charged == nil {
		return
	}
	for _, b := range c.charged.buckets {
		b.refund()
	}
	c.charged.buckets = nil
}

// maxBuckets bounds the buckets that are kept although they are full.
const maxBuckets = 10_000

// buckets holds the users' token buckets, created at first use.
type buckets struct {
	mu  sync.Mutex // guards all
	all map[bucketKey]*bucket
}

// bucketKey identifies a bucket: of a user and a tool, or of all changes by a user.
type bucketKey struct{ user, tool string }

// of returns a bucket with a rate. Another rate than before, by a reload or another credential of the
// user, fills no bucket.
func (s *buckets) of(key bucketKey, rate catalog.Rate) *bucket {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.all[key]
	if b == nil {
		if len(s.all) >= maxBuckets {
			maps.DeleteFunc(s.all, func(_ bucketKey, b *bucket) bool { return b.isFull(now) })
		}
		b = &bucket{rate: rate, tokens: float64(rate.Calls), filled: now}
		s.all[key] = b
		return b
	}
	b.change(rate, now)
	return b
}

// bucket is a token bucket that accepts returned tokens at any time.
// golang.org/x/time/rate.Limiter cannot do that: its Reservation.Cancel returns nothing once
// the time of the reservation has passed, and a call may be refunded much later, after a
// person has refused it.
type bucket struct {
	mu     sync.Mutex // guards the rest
	rate   catalog.Rate
	tokens float64
	filled time.Time
}

// change gives the bucket another rate.
func (b *bucket) change(rate catalog.Rate, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rate == rate {
		return
	}
	b.fill(now)
	b.rate, b.tokens = rate, min(b.tokens, float64(rate.Calls))
}

// isFull reports whether nothing was taken that is not back.
func (b *bucket) isFull(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	return b.tokens >= float64(b.rate.Calls)
}

// take takes a token and returns 0, or returns how long it takes until one is available.
func (b *bucket) take(now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	if b.tokens >= 1 {
		b.tokens--
		return 0
	}
	return max(time.Millisecond, time.Duration((1-b.tokens)*float64(b.rate.Per)/float64(b.rate.Calls)))
}

// refund returns a token.
func (b *bucket) refund() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+1, float64(b.rate.Calls))
}

// fill adds the tokens for the time that has passed. The caller holds b.mu.
func (b *bucket) fill(now time.Time) {
	gained := float64(now.Sub(b.filled)) * float64(b.rate.Calls) / float64(b.rate.Per)
	if gained > 0 {
		b.tokens, b.filled = min(b.tokens+gained, float64(b.rate.Calls)), now
	}
}
