package oidc

import "time"

// Bounds that tests count with.
const (
	RefreshAfter = refreshAfter
	KeepFor      = keepFor
	UnknownEvery = unknownEvery
	RetryAfter   = retryAfter
	MaxKnown     = maxKnown
	MaxAnswer    = maxAnswer
	MaxKeys      = maxKeys
	Skew         = skew
	Grace        = grace
)

// WithFetchTime returns options with another bound of a fetch.
func (o Options) WithFetchTime(d time.Duration) Options {
	o.fetchTime = d
	return o
}

// Known returns how many tokens of the first issuer are remembered.
func (s *Issuers) Known() int {
	v := (*s.all.Load())[0]
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.verified)
}

// Fetched waits for the fetches under way.
func (s *Issuers) Fetched() {
	for _, v := range *s.all.Load() {
		v.keys.mu.Lock()
		fetching := v.keys.fetching
		v.keys.mu.Unlock()
		if fetching != nil {
			<-fetching
		}
	}
}
