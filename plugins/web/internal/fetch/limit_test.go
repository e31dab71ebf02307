package fetch

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Hosts are forgotten when there are many, but none that is in use.
func TestHostsAreBounded(t *testing.T) {
	h := newHosts(Limits{Total: 10, PerHost: 1, Rate: 1, Burst: 1})
	held, err := h.enter(t.Context(), "held")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxHosts {
		turn, err := h.enter(t.Context(), strconv.Itoa(i))
		if err != nil {
			t.Fatal(err)
		}
		turn.leave()
		turn.leave() // once more is nothing
	}
	if len(h.byName) > maxHosts || h.byName["held"] == nil || len(h.total) != 1 {
		t.Errorf("%d hosts are known, %d places taken, and the one in use is %v", len(h.byName), len(h.total), h.byName["held"])
	}
	held.leaveHost()
	if len(h.total) != 1 || h.byName["held"].users != 0 {
		t.Errorf("after the exchange %d places are taken, and %d users at the host", len(h.total), h.byName["held"].users)
	}
	held.leave()
	if len(h.total) != 0 {
		t.Errorf("%d places are taken in the end", len(h.total))
	}
}

// A caller that gives up leaves no place occupied.
func TestGivingUp(t *testing.T) {
	h := newHosts(Limits{Total: 1, PerHost: 1, Rate: 1000, Burst: 1000})
	all, err := h.enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"a", "b"} { // one waits for its host, one for all
		if _, err := h.enter(ctx, name); !errors.Is(err, errNoTurn) {
			t.Errorf("%s: %v", name, err)
		}
	}
	all.leave()
	for _, name := range []string{"a", "b"} {
		turn, err := h.enter(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		turn.leave()
		if h.byName[name].users != 0 {
			t.Errorf("%s has %d users", name, h.byName[name].users)
		}
	}
}

// A call that times out while it waits for its turn says so. It does not blame a host that was
// never contacted.
func TestNoTurn(t *testing.T) {
	for _, held := range []string{"example.com", "other.example"} { // the place at the host, or the place among all
		c := New(Options{
			Check: func(*url.URL) error { return nil },
			Dial: func(context.Context, string, string) (net.Conn, error) {
				t.Error("the host is contacted")
				return nil, net.ErrClosed
			},
			Timeout: 50 * time.Millisecond, MaxBody: 1 << 20, Limits: Limits{Total: 1, PerHost: 1, Rate: 1000, Burst: 1000},
		})
		turn, err := c.hosts.enter(t.Context(), held)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Do(t.Context(), Request{URL: &url.URL{Scheme: "https", Host: "example.com", Path: "/"}, Robots: true})
		if e := tool.AsError(err); err == nil || e.Code != tool.RateLimited || e.Message != "too many requests are running: the request to example.com could not start within 50ms" {
			t.Errorf("%v", err)
		}
		turn.leave()
		c.Close()
	}
}
