package pipeline

import (
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// admission is what a call was charged for being admitted.
type admission struct {
	admitted bool
	charged  []*bucket
}

// admit refuses a call of a caller that has made too many: of a tool with a
// rate of its own, or of calls that change something. A call that begins anew
// is admitted once.
func (p *Pipeline) admit(c *call) error {
	if c.admission.admitted {
		return nil
	}
	now := time.Now()
	var charges []*bucket
	if rate := c.entry.Rate; rate.Calls > 0 {
		charges = append(charges, p.buckets.of(bucketKey{user: c.Caller.User, tool: c.entry.Spec.Name}, rate))
	}
	if actions := p.applied.Load().ActionsPerHour; actions > 0 && c.tier != tool.ReadOnly {
		charges = append(charges, p.buckets.of(bucketKey{user: c.Caller.User}, catalog.Rate{Calls: actions, Per: time.Hour}))
	}
	for i, b := range charges {
		wait := b.take(now)
		if wait == 0 {
			continue
		}
		for _, earlier := range charges[:i] {
			earlier.giveBack()
		}
		return tool.Errorf(tool.RateLimited, "Rate limit exceeded").
			WithHint("%s may be called again in %s", c.entry.Spec.Name, wait.Round(time.Second)).WithRetry(wait)
	}
	c.admission = admission{admitted: true, charged: charges}
	return nil
}

// refund gives back what a call was charged that was never handed to its
// plugin, unless the policy denied it: who makes such calls again and again is
// held up.
func (c *call) refund() {
	for _, b := range c.admission.charged {
		b.giveBack()
	}
	c.admission.charged = nil
}

// buckets are the token buckets of callers, made when they are first used. There
// are no more than users in the configuration times tools with a rate.
type buckets struct {
	mu  sync.Mutex // guards all
	all map[bucketKey]*bucket
}

// bucketKey names a bucket: of a user and a tool, or of a user's actions.
type bucketKey struct{ user, tool string }

func (s *buckets) of(key bucketKey, rate catalog.Rate) *bucket {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.all[key]
	if b == nil || b.rate != rate {
		b = &bucket{rate: rate, tokens: float64(rate.Calls), filled: time.Now()}
		s.all[key] = b
	}
	return b
}

// bucket holds tokens, which a call takes and time brings back.
type bucket struct {
	rate catalog.Rate

	mu     sync.Mutex // guards tokens and filled
	tokens float64
	filled time.Time
}

// take takes a token, or says how long it is until there is one.
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

func (b *bucket) giveBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+1, float64(b.rate.Calls))
}

// fill adds what time has brought. b.mu is held.
func (b *bucket) fill(now time.Time) {
	gained := float64(now.Sub(b.filled)) * float64(b.rate.Calls) / float64(b.rate.Per)
	if gained > 0 {
		b.tokens, b.filled = min(b.tokens+gained, float64(b.rate.Calls)), now
	}
}
