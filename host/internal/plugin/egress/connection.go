package egress

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Connection describes a connection, or the attempt to make one.
type Connection struct {
	// Plugin is the plugin's name; the supervisor sets it.
	Plugin string `json:"plugin"`
	// Call is the call that caused it; "" if none is known. User and Session are its caller's.
	Call    string `json:"call,omitempty"`
	User    string `json:"user,omitempty"`
	Session string `json:"session,omitempty"`
	// Host and Port are the destination, and Address is the IP address that was dialed; "" if none
	// was.
	Host    string `json:"host"`
	Port    uint16 `json:"port"`
	Address string `json:"address,omitempty"`
	// Verdict and Rule are the decision of the rules, Permission that of a person or a grant.
	Verdict Verdict `json:"verdict"`
	Rule    string  `json:"rule"`
	tool.Permission
	// Error is why it was refused or failed; "" if it was made.
	Error string `json:"error,omitempty"`
	// Refused is set if it was refused.
	Refused bool `json:"refused,omitempty"`
	// Sent and Received are bytes of the process, and of the other side.
	Sent     int64 `json:"sent"`
	Received int64 `json:"received"`
	// Opened is when it was asked for, and Duration how long it lasted; 0 while it is open.
	Opened   time.Time     `json:"opened"`
	Duration time.Duration `json:"-"`
}

// Target returns the destination.
func (c *Connection) Target() Target { return Target{Host: c.Host, Port: c.Port} }

// connection is a connection in progress.
type connection struct {
	proxy *Proxy
	cause Cause
	raw   bool // it may carry any protocol

	number         int64
	sent, received atomic.Int64
	halfOver       atomic.Bool // one side has ended
	mu             sync.Mutex  // guards the fields below
	about          Connection
	over           error // it has transferred too much
}

// decided notes the decision about a destination.
func (c *connection) decided(to Target, d Decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.about = Connection{
		Call: c.cause.Call, User: c.cause.User, Session: c.cause.Session, Host: to.Host, Port: to.Port,
		Verdict: d.Verdict, Rule: d.Rule, Opened: time.Now(),
	}
	c.raw = d.raw
}

// answered notes who has decided about it.
func (c *connection) answered(by tool.Permission) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.about.Permission = by
}

// dialed notes the address, and that the connection is open. Plain HTTP in a tunnel dials again for
// each request.
func (c *connection) dialed(conn net.Conn) {
	c.mu.Lock()
	if to, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		c.about.Address = to.AddrPort().Addr().Unmap().String()
	}
	c.mu.Unlock()
	p := c.proxy
	p.mu.Lock()
	first := c.number == 0
	if first {
		p.last++
		c.number = p.last
		p.live[c.number] = c
	}
	p.mu.Unlock()
	if first {
		p.opts.Opened(c.snapshot())
	}
}

// untilCallEnds calls end when the call has ended that the connection was allowed for by a person or a
// grant, or whose user's secrets it gets. The caller calls stop.
func (c *connection) untilCallEnds(credentials []Credential, end func()) (stop func()) {
	c.mu.Lock()
	bound := c.about.By != ""
	c.mu.Unlock()
	if bound = bound || slices.ContainsFunc(credentials, func(c Credential) bool { return c.PerUser }); !bound || c.cause.Ended == nil {
		return func() {}
	}
	over := make(chan struct{})
	go func() { // ends with stop
		select {
		case <-c.cause.Ended:
			end()
		case <-over:
		}
	}()
	return func() { close(over) }
}

// refused reports that the connection was refused. A process that is refused again and again waits, so
// that it does not fill the journal.
func (c *connection) refused(ctx context.Context, err error) {
	c.closed(err)
	_ = c.proxy.slow.Wait(ctx) // until the client is gone, at most
}

// closed reports the end of the connection, or why there is none.
func (c *connection) closed(err error) {
	p := c.proxy
	p.mu.Lock()
	delete(p.live, c.number)
	p.mu.Unlock()
	about := c.snapshot()
	about.Duration = time.Since(about.Opened)
	if c.mu.Lock(); err == nil { // HTTP reports it as a broken connection
		err = c.over
	}
	c.mu.Unlock()
	if err != nil {
		about.Error, about.Refused = err.Error(), isRefusal(err)
		if refused, ok := errors.AsType[*tool.Error](err); ok {
			about.Error = refused.Message // without its code
		}
	}
	p.opts.Closed(about)
}

func (c *connection) snapshot() Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	about := c.about
	about.Sent, about.Received = c.sent.Load(), c.received.Load()
	return about
}

// count notes transferred bytes and returns an error once there are too many.
func (c *connection) count(counter *atomic.Int64, n int64) error {
	counter.Add(n)
	var over error
	if limit := int64(c.proxy.opts.Rules.MaxBytes); limit > 0 && c.sent.Load()+c.received.Load() > limit {
		over = &tooLargeError{limit: c.proxy.opts.Rules.MaxBytes}
	}
	if used := c.proxy.opts.Quotas.use(c.cause.User, n); used != nil && over == nil {
		over = used
	}
	if over != nil {
		c.mu.Lock()
		c.over = over
		c.mu.Unlock()
	}
	return over
}

// chunk is how many bytes are carried before they are counted.
const chunk = 256 << 10

// left returns how many bytes to carry before they are counted: one more than are allowed, at most.
func (c *connection) left() int64 {
	most := min(chunk, c.proxy.opts.Quotas.left(c.cause.User)+1)
	if limit := int64(c.proxy.opts.Rules.MaxBytes); limit > 0 {
		most = min(most, limit-c.sent.Load()-c.received.Load()+1)
	}
	return max(1, most)
}

// tooLargeError ends a connection that has transferred too much.
type tooLargeError struct{ limit tool.ByteSize }

// Error implements error.
func (e *tooLargeError) Error() string {
	return "the connection transferred more than max_bytes (" + e.limit.String() + ")"
}

// counted is a connection whose bytes are counted; those that are written are the process's.
type counted struct {
	net.Conn

	c *connection
}

// Read implements [io.Reader].
func (s counted) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if over := s.c.count(&s.c.received, int64(n)); over != nil {
		err = over
	}
	return n, err
}

// Write implements [io.Writer].
func (s counted) Write(b []byte) (int, error) {
	if err := s.c.count(&s.c.sent, int64(len(b))); err != nil {
		return 0, err
	}
	return s.Conn.Write(b)
}
