package fetch

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound the load on servers, and the memory of the client.
type Limits struct {
	// Total is the number of responses at the same time, until they are released.
	// PerHost is the number of exchanges with one host at the same time. Both are at
	// least 1.
	Total, PerHost int
	// Rate is the number of exchanges with one host per second, and Burst how many of
	// them may begin at once.
	Rate  rate.Limit
	Burst int
}

// maxHosts is the number of hosts from which on unused ones are dropped.
const maxHosts = 1024

// errBusy reports that the host's rate limit delays a request beyond its deadline.
var errBusy = errors.New("too many requests to the host")

// errNoTurn reports that a request did not get a slot before its deadline.
var errNoTurn = errors.New("no slot for the request")

// hosts holds the slots and rate limits of the hosts that were contacted recently.
type hosts struct {
	limits Limits
	total  chan struct{}
	mu     sync.Mutex // guards byName and the users of each host
	byName map[string]*host
}

type host struct {
	slots chan struct{}
	rate  *rate.Limiter
	users int // requests that are waiting or running
}

func newHosts(l Limits) *hosts {
	return &hosts{limits: l, total: make(chan struct{}, l.Total), byName: make(map[string]*host)}
}

// turn holds the slots of one request.
type turn struct {
	host, total chan struct{} // nil if the request has no slot there
	done        func()
}

// leaveHost frees the slot of the host.
func (t *turn) leaveHost() {
	if t.host != nil {
		<-t.host
		t.host = nil
		t.done()
	}
}

// leave frees all slots. It may be called more than once.
func (t *turn) leave() {
	t.leaveHost()
	if t.total != nil {
		<-t.total
		t.total = nil
	}
}

// enter waits until a request to a host may begin. It waits for the host first, so that
// a slow host does not block requests to others. The caller must leave the turn.
func (h *hosts) enter(ctx context.Context, name string) (*turn, error) {
	one := h.use(name)
	done := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		one.users--
	}
	if err := one.rate.Wait(ctx); err != nil {
		done()
		if ctx.Err() != nil {
			return nil, errNoTurn
		}
		return nil, errBusy // the wait would exceed the deadline
	}
	select {
	case one.slots <- struct{}{}:
	case <-ctx.Done():
		done()
		return nil, errNoTurn
	}
	t := &turn{host: one.slots, done: done}
	select {
	case h.total <- struct{}{}:
		t.total = h.total
		return t, nil
	case <-ctx.Done():
		t.leave()
		return nil, errNoTurn
	}
}

// use returns the host of a name and adds a user to it.
func (h *hosts) use(name string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.byName) >= maxHosts {
		h.forget()
	}
	one := h.byName[name]
	if one == nil {
		one = &host{slots: make(chan struct{}, h.limits.PerHost), rate: rate.NewLimiter(h.limits.Rate, h.limits.Burst)}
		h.byName[name] = one
	}
	one.users++
	return one
}

// forget drops the unused hosts whose rate limit is back at its burst, or if that is not
// enough, all unused hosts.
func (h *hosts) forget() {
	now := time.Now()
	for _, any := range []bool{false, true} {
		for name, one := range h.byName {
			if one.users == 0 && (any || one.rate.TokensAt(now) >= float64(h.limits.Burst)) {
				delete(h.byName, name)
			}
		}
		if len(h.byName) < maxHosts {
			return
		}
	}
}
