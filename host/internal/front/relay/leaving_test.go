package relay_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/host/internal/front/relay"
)

const leaving = `{"jsonrpc":"2.0","method":"` + relay.Leaving + `"}`

// TestHostLeaves has a host announce that it leaves: the relay sends it nothing more, passes on
// its last answers, and sends the rest to the next host.
func TestHostLeaves(t *testing.T) {
	c := newServed(t)
	first := c.host(t.Context())
	c.says(request("1", "tools/call"))
	first.hears("tools/call")
	first.says(leaving)
	if line, ok := <-first.in; ok {
		t.Fatalf("a host that leaves hears %q, want the end", line)
	}
	said := make(chan struct{})
	go func() { // ends when the next host has it
		defer close(said)
		c.says(request("2", "tools/call"))
	}()
	first.says(answer("1", `{"text":"done"}`))
	c.hears(`"id":1`, "done") // and not that the host leaves
	first.goes()
	next := c.host(t.Context())
	next.hears(`"id":2`)
	<-said
	next.says(answer("2", "{}"))
	c.hears(`"id":2`, `"result":{}`)
}

// TestHostsThatLeaveEndNoSubscription is a subscription that outlives more
// hosts than a request that may be what ends them.
func TestHostsThatLeaveEndNoSubscription(t *testing.T) {
	c := newServed(t)
	h := c.host(t.Context())
	c.says(request("1", "subscriptions/listen"))
	for range 5 {
		h.hears("subscriptions/listen")
		h.says(leaving)
		if line, ok := <-h.in; ok {
			t.Fatalf("a host that leaves hears %q, want the end", line)
		}
		h.goes()
		h = c.host(t.Context())
	}
	h.hears("subscriptions/listen")
	h.says(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	c.hears("list_changed")
}

// TestHostThatLeavesAndStays is given up: its client gets the next one.
func TestHostThatLeavesAndStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newServed(t)
		h := c.host(t.Context())
		c.says(request("1", "tools/call"))
		h.hears("tools/call")
		h.says(leaving)
		if err := h.end(); !errors.Is(err, relay.ErrStopped) {
			t.Errorf("Serve = %v, want %v", err, relay.ErrStopped)
		}
		c.hears(`"id":1`, "not known")
	})
}
