package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/hashicorp/go-hclog"
)

const (
	// refreshAfter is the age at which keys are fetched again: a key that the issuer has removed
	// is valid that long.
	refreshAfter = time.Hour
	// keepFor is how long keys are valid without a successful fetch.
	keepFor = 24 * time.Hour
	// unknownEvery is the least time between two fetches for keys that are not known.
	unknownEvery = time.Minute
	// retryAfter is the least time from the start of a failed fetch to the next one.
	retryAfter = 15 * time.Second
)

// keySet holds the keys of one issuer. At most one fetch is under way, outside of the lock.
type keySet struct {
	issuer    Issuer
	client    *http.Client
	now       func() time.Time
	fetchTime time.Duration
	logger    hclog.Logger
	running   sync.WaitGroup

	mu         sync.Mutex // guards what follows
	keys       []jose.JSONWebKey
	generation int       // how often keys were fetched
	fetched    time.Time // when that was last
	unknown    time.Time // when a fetch for a key that is not known began
	begun      time.Time // when the last fetch began
	failure    error     // of the last fetch
	fetching   chan struct{}
	cancel     context.CancelFunc // of the fetch under way
	closed     bool
}

func newKeySet(issuer Issuer, opts Options) *keySet {
	return &keySet{issuer: issuer, client: newClient(), now: opts.Now, fetchTime: opts.fetchTime, logger: opts.Logger}
}

// current returns the keys in force, and how often they were fetched. If there are none, it waits
// for a fetch. Otherwise it begins one when the keys are old, and does not wait.
func (k *keySet) current(ctx context.Context) ([]jose.JSONWebKey, int, error) {
	k.mu.Lock()
	now := k.now()
	if k.generation == 0 || now.Sub(k.fetched) >= refreshAfter {
		k.begin(ctx, now)
	}
	if k.inForce(now) {
		defer k.mu.Unlock()
		return k.keys, k.generation, nil
	}
	return k.wait(ctx)
}

// after returns newer keys than those of a generation, for a token whose key is not among them.
// It fetches them at most once a minute, whatever tokens arrive, and otherwise returns what it
// has.
func (k *keySet) after(ctx context.Context, generation int) ([]jose.JSONWebKey, int, error) {
	k.mu.Lock()
	now := k.now()
	if k.fetching == nil && k.generation == generation && now.Sub(k.unknown) >= unknownEvery && k.begin(ctx, now) {
		k.unknown = now
	}
	return k.wait(ctx)
}

// inForce reports whether there are keys that are not too old. k.mu is held.
func (k *keySet) inForce(now time.Time) bool { return k.generation > 0 && now.Sub(k.fetched) < keepFor }

// wait waits for the fetch under way, if there is one, and returns the keys. k.mu is held, and
// released.
func (k *keySet) wait(ctx context.Context) ([]jose.JSONWebKey, int, error) {
	fetching := k.fetching
	k.mu.Unlock()
	if fetching != nil {
		select {
		case <-fetching:
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.inForce(k.now()) {
		return nil, 0, &Error{Issuer: k.issuer.Name, Outage: true, Reason: "the issuer's keys cannot be fetched, so no token of it can be checked"}
	}
	return k.keys, k.generation, nil
}

// begin begins a fetch and reports whether it has, or one is under way: not soon after one that
// failed. k.mu is held. The end of ctx does not end the fetch, since others wait for it.
func (k *keySet) begin(ctx context.Context, now time.Time) bool {
	switch {
	case k.fetching != nil:
		return true
	case k.closed, k.failure != nil && now.Sub(k.begun) < retryAfter:
		return false
	}
	done := make(chan struct{})
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), k.fetchTime, fmt.Errorf("no answer within %v", k.fetchTime))
	k.fetching, k.cancel, k.begun = done, cancel, now
	k.running.Go(func() { // ends within fetchTime; close waits for it
		defer close(done)
		defer cancel()
		keys, err := k.fetch(ctx)
		if err != nil && ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		k.end(keys, err)
	})
	return true
}

// end takes the result of a fetch over.
func (k *keySet) end(keys []jose.JSONWebKey, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fetching, k.cancel, k.failure = nil, nil, err
	switch {
	case k.closed:
	case err == nil:
		k.keys, k.fetched = keys, k.now()
		k.generation++
	case k.inForce(k.now()):
		k.logger.Warn("the keys of an issuer cannot be fetched; its known keys stay valid for a while",
			"issuer", k.issuer.Name, "until", k.fetched.Add(keepFor).UTC().Format(time.RFC3339), "error", err)
	default:
		k.logger.Error("the keys of an issuer cannot be fetched; its callers are refused", "issuer", k.issuer.Name, "error", err)
	}
}

// close ends the fetch under way and returns when it has ended. No other begins.
func (k *keySet) close() {
	k.mu.Lock()
	k.closed = true
	if k.cancel != nil {
		k.cancel()
	}
	k.mu.Unlock()
	k.running.Wait()
}
