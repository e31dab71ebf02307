package fetch

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound what a client does to servers, and to its own memory.
type Limits struct {
	// Total is how many answers there are at the same time, until they are released;
	// PerHost how many exchanges with one host; both at least 1.
	Total, PerHost int
	// Rate is how many exchanges begin with one host, of which Burst may follow
	// each other at once.
	Rate  rate.Limit
	Burst int
}

// maxHosts is from how many hosts on those are forgotten that nobody contacts.
const maxHosts = 1024

// errBusy says that the turn of a request would come too late.
var errBusy = errors.New("too many requests to the host")

// errNoTurn says that the turn of a request did not come in time.
var errNoTurn = errors.New("no place for the request")

// hosts are those that are contacted, or were not long ago.
type hosts struct {
	limits Limits
	total  chan struct{}
	mu     sync.Mutex // guards byName and users of each
	byName map[string]*host
}

type host struct {
	slots chan struct{}
	rate  *rate.Limiter
	users int // requests that wait or run
}

func newHosts(l Limits) *hosts {
	return &hosts{limits: l, total: make(chan struct{}, l.Total), byName: make(map[string]*host)}
}

// turn is the turn of one request.
type turn struct {
	host, total chan struct{} // where it has a place; nil if it has none
	done        func()
}

// leaveHost lets the next request to the host begin.
func (t *turn) leaveHost() {
	if t.host != nil {
		<-t.host
		t.host = nil
		t.done()
	}
}

// leave ends the turn. It may be called more than once.
func (t *turn) leave() {
	t.leaveHost()
	if t.total != nil {
		<-t.total
		t.total = nil
	}
}

// enter waits until a request to a host may begin: for its host first, so that who
// waits for one host keeps nobody from another. Whoever entered leaves.
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
		return nil, errBusy // the wait would be longer than the time
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

// use returns the host of a name and counts one user more.
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

// forget drops the hosts whose rate is as if nobody had ever contacted them; and
// if all were contacted just now, any that nobody uses.
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
