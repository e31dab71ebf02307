package fetch

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// tunnels are the connections of one request and of those that it leads to. Each is made before the
// request takes its turn, so that no other request waits while a person is asked about a host.
type tunnels struct {
	dial      dialFunc
	timer     *timer
	transport *http.Transport

	mu   sync.Mutex          // guards made
	made map[string]net.Conn // by address; nil once it is used
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// newTunnels returns the tunnels of a request. The caller closes them.
func (o *Options) newTunnels(dial dialFunc, limit *timer) *tunnels {
	t := &tunnels{dial: dial, timer: limit, made: make(map[string]net.Conn)}
	t.transport = o.newTransport(t.take)
	return t
}

// open makes the connection for the host of a URL, unless there was one.
func (t *tunnels) open(ctx context.Context, u *url.URL) error {
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	address := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
	t.mu.Lock()
	_, ok := t.made[address]
	t.mu.Unlock()
	if ok {
		return nil
	}
	defer t.timer.pause()()
	conn, err := t.dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made[address] = conn
	return nil
}

// take returns the connection that open made, or another one.
func (t *tunnels) take(ctx context.Context, network, address string) (net.Conn, error) {
	t.mu.Lock()
	conn := t.made[address]
	if conn != nil {
		t.made[address] = nil
	}
	t.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	return t.dial(ctx, network, address)
}

// close closes the connections that are not in use.
func (t *tunnels) close() {
	t.transport.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, conn := range t.made {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

// timer ends a context when its time is up. It stands still while it is paused.
type timer struct {
	mu      sync.Mutex // guards the fields below
	timer   *time.Timer
	left    time.Duration // when it last began to run
	began   time.Time
	pauses  int
	over    bool
	expired context.CancelCauseFunc
}

// withTimer returns a context that ends with ctx, or with [context.DeadlineExceeded] as its cause
// after d without pauses. The caller calls end.
func withTimer(ctx context.Context, d time.Duration) (context.Context, *timer) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := &timer{left: d, began: time.Now(), expired: cancel}
	t.timer = time.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return ctx, t
}

// pause stops the timer until resume is called.
func (t *timer) pause() (resume func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pauses++; t.pauses == 1 {
		t.timer.Stop()
		t.left -= time.Since(t.began)
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.pauses--; t.pauses == 0 && !t.over {
			t.began = time.Now()
			t.timer.Reset(max(0, t.left))
		}
	}
}

// end frees the timer.
func (t *timer) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.timer.Stop()
	t.expired(nil)
}
