package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// limitListener bounds the open connections. Further ones wait in the system's queue.
// Connections without an authenticated request have a lower bound: one more closes the
// oldest of them, so that they never keep out a client with a token.
type limitListener struct {
	net.Listener
	slots           chan struct{}
	unauthenticated int    // the bound; 0 means the number of slots
	evicted         func() // called for each connection that is closed for another
	closed          chan struct{}
	once            sync.Once

	mu      sync.Mutex     // guards waiting
	waiting []*limitedConn // the unauthenticated ones, oldest first
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

// evict closes the oldest unauthenticated connection if there are more than most.
func (l *limitListener) evict(most int) {
	l.mu.Lock()
	var oldest *limitedConn
	if len(l.waiting) > most {
		oldest = l.waiting[0]
		l.waiting = slices.Delete(l.waiting, 0, 1)
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // its client notices, or is gone itself
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

// processOf returns the process that has opened the connection of a context.
func processOf(ctx context.Context) auth.Peer {
	if conn, ok := ctx.Value(connKey{}).(networkConn); ok {
		return conn.process
	}
	return func() (auth.Process, error) { return auth.Process{}, errors.New("the request came over no connection") }
}

// authenticated notes that a request on the connection had a valid token. The
// connection is no longer closed for others.
func (c *limitedConn) authenticated() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if i := slices.Index(c.listener.waiting, c); i >= 0 {
		c.listener.waiting = slices.Delete(c.listener.waiting, i, i+1)
	}
}

// SyscallConn implements [syscall.Conn], so that the owner of a hijacked connection can check
// whether the client is still connected.
func (c *limitedConn) SyscallConn() (syscall.RawConn, error) {
	conn, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return conn.SyscallConn()
}

// Close implements [net.Conn].
func (c *limitedConn) Close() error {
	c.authenticated() // takes it out of the waiting ones
	defer c.release()
	return c.Conn.Close()
}

// connKey is the key of a connection, a [networkConn], in its context.
type connKey struct{}

// networkConn is a connection to a network listener.
type networkConn struct {
	net.Conn
	// origin is the account that opened it. The first token that depends on it looks it
	// up.
	origin auth.Origin
	// process says which process has opened it; it is looked up once.
	process auth.Peer
}

// withConn adds a connection to its context.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	origin := untilKnown(func() (int, error) { return auth.ConnOrigin(conn) })
	process := sync.OnceValues(func() (auth.Process, error) { return auth.TCPProcess(conn) })
	return context.WithValue(ctx, connKey{}, networkConn{conn, origin, process})
}

// untilKnown returns an origin that is looked up until one lookup succeeds: an error
// such as too many open files may pass.
func untilKnown(look auth.Origin) auth.Origin {
	var mu sync.Mutex // guards the following
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

// originOf returns the account that opened the connection of a context.
func originOf(ctx context.Context) auth.Origin {
	if conn, ok := ctx.Value(connKey{}).(networkConn); ok {
		return conn.origin
	}
	return func() (int, error) { return 0, errors.New("the request has no connection") }
}

// authenticated notes that a request on the connection of a context had a valid token.
func authenticated(ctx context.Context) {
	conn, _ := ctx.Value(connKey{}).(networkConn)
	if limited, ok := conn.Conn.(*limitedConn); ok {
		limited.authenticated()
	}
}

// requestLimit bounds the open requests of each credential, so that a caller that
// waits for many things does not block others, such as the person who decides.
type requestLimit struct {
	most int // of one credential
	all  int // of all together; 0 means no bound

	mu       sync.Mutex // guards everything below
	requests map[credential]int
	total    int
}

// credential identifies callers by their credentials.
type credential struct {
	user, token string
	roles       auth.Roles
}

// enter counts a request until leave is called. It fails if there are too many.
func (l *requestLimit) enter(caller auth.Caller) (leave func(), err error) {
	key := credential{caller.User, caller.Token, caller.Roles}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests == nil {
		l.requests = make(map[credential]int)
	}
	if l.requests[key] == l.most || l.all > 0 && l.total == l.all {
		p := tooMany.problem("%d requests of this credential are open, and %d in all", l.requests[key], l.total)
		p.retryAfter = time.Second
		return nil, p.hint("wait for some of them to end, or follow /v1/events instead of polling")
	}
	l.requests[key]++
	l.total++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.total--
		if l.requests[key]--; l.requests[key] == 0 {
			delete(l.requests, key)
		}
	}, nil
}

// Bounds of invalid tokens, per token and in all.
const (
	failureBurst = 10
	failureEvery = 6 * time.Second
	maxFailures  = 1024
)

// failures counts invalid tokens, so that a client that sends the same one again and
// again costs little and does not fill the log.
type failures struct {
	mu   sync.Mutex // guards seen
	seen map[[sha256.Size]byte]*rate.Limiter
}

// count counts one failure. It returns how long the client must wait; 0 means not at
// all.
func (f *failures) count(secret string) time.Duration {
	sum := sha256.Sum256([]byte(secret))
	f.mu.Lock()
	defer f.mu.Unlock()
	limiter := f.seen[sum]
	if limiter == nil {
		if f.seen == nil || len(f.seen) >= maxFailures {
			f.seen = make(map[[sha256.Size]byte]*rate.Limiter)
		}
		limiter = rate.NewLimiter(rate.Every(failureEvery), failureBurst)
		f.seen[sum] = limiter
	}
	if limiter.Allow() {
		return 0
	}
	return failureEvery
}
