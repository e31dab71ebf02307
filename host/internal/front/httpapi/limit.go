package httpapi

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// limitListener accepts a bounded number of connections at the same time.
// Further ones wait in the system's queue. Connections that have not been
// authenticated have a lower bound: for one more, the oldest of them is closed,
// so that they never keep a client with a token out.
type limitListener struct {
	net.Listener
	slots           chan struct{}
	unauthenticated int    // how many at most; 0 means as many as there are slots
	evicted         func() // called for each that is closed for another
	closed          chan struct{}
	once            sync.Once

	mu      sync.Mutex     // guards waiting
	waiting []*limitedConn // those that are not authenticated, oldest first
}

func newLimitListener(l net.Listener, most, unauthenticated int, evicted func()) *limitListener {
	return &limitListener{
		Listener: l, slots: make(chan struct{}, most), unauthenticated: unauthenticated, evicted: evicted,
		closed: make(chan struct{}),
	}
}

// Accept implements [net.Listener].
func (l *limitListener) Accept() (net.Conn, error) {
	if l.unauthenticated > 0 && len(l.slots) == cap(l.slots) {
		l.evict(0)
	}
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	limited := &limitedConn{Conn: conn, listener: l, release: sync.OnceFunc(func() { <-l.slots })}
	if l.unauthenticated > 0 {
		l.evict(l.unauthenticated - 1)
		l.mu.Lock()
		l.waiting = append(l.waiting, limited)
		l.mu.Unlock()
	}
	return limited, nil
}

// evict closes the oldest connection that is not authenticated if there are
// more than most.
func (l *limitListener) evict(most int) {
	l.mu.Lock()
	var oldest *limitedConn
	if len(l.waiting) > most {
		oldest = l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // its client learns that it is gone, or is gone itself
		l.evicted()
	}
}

// Close implements [net.Listener].
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn is a connection that takes a slot until it is closed.
type limitedConn struct {
	net.Conn
	listener *limitListener
	release  func()
}

// authenticated notes that a request on the connection had a token: it is not
// closed for others any more.
func (c *limitedConn) authenticated() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if i := slices.Index(c.listener.waiting, c); i >= 0 {
		c.listener.waiting = slices.Delete(c.listener.waiting, i, i+1)
	}
}

// SyscallConn implements [syscall.Conn]: whoever takes the connection over can
// see whether the client is there.
func (c *limitedConn) SyscallConn() (syscall.RawConn, error) {
	conn, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return conn.SyscallConn()
}

// Close implements [net.Conn].
func (c *limitedConn) Close() error {
	c.authenticated() // it waits for nothing any more
	defer c.release()
	return c.Conn.Close()
}

// connKey is the key of a connection, a [networkConn], in its context.
type connKey struct{}

// networkConn is a connection to a network listener.
type networkConn struct {
	net.Conn
	// origin says which account has opened it. It is looked up only if a token is sent
	// that it matters for, and once it is known not again.
	origin auth.Origin
}

// withConn adds a connection to its context.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	origin := untilKnown(func() (int, error) { return auth.TCPOrigin(conn) })
	return context.WithValue(ctx, connKey{}, networkConn{conn, origin})
}

// untilKnown is an origin that is looked up until it is known: an error may pass, such as
// that too many files are open.
func untilKnown(look auth.Origin) auth.Origin {
	var mu sync.Mutex // guards what follows
	known, account := false, 0
	return func() (uid int, err error) {
		mu.Lock()
		defer mu.Unlock()
		if !known {
			if account, err = look(); err != nil {
				return 0, err
			}
			known = true
		}
		return account, nil
	}
}

// originOf returns the account that has opened the connection of a context.
func originOf(ctx context.Context) auth.Origin {
	if conn, ok := ctx.Value(connKey{}).(networkConn); ok {
		return conn.origin
	}
	return func() (int, error) { return 0, errors.New("the request came over no connection") }
}

// authenticated notes that a request on the connection of a context had a token.
func authenticated(ctx context.Context) {
	conn, _ := ctx.Value(connKey{}).(networkConn)
	if limited, ok := conn.Conn.(*limitedConn); ok {
		limited.authenticated()
	}
}
