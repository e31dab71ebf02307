// Package egress is the way of a plugin's processes to the network: an HTTP proxy of the host, which
// is all that a process without a network of its own can reach. It checks each destination against
// the rules of the plugin, lets a person decide where they say so, resolves names once, and dials
// only addresses that it has checked.
//
// A process cannot reach anything else, so nothing depends on whether its programs use the proxy
// well: a request that the proxy does not understand fails.
package egress

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/toolhost/toolhost/sdk/guard"
	"github.com/toolhost/toolhost/sdk/proxy"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// Address is where the proxy listens in the network namespace of the process.
	Address = "127.0.0.1:3128"
	// Port is the port of Address.
	Port = 3128

	// maxConnections bounds the connections of one process. Further ones wait in the kernel.
	maxConnections = 1024
	// maxPerSecond bounds the new connections per second, and maxRefusedPerSecond those that are
	// refused: each becomes a row of the journal. As many as maxConnections, and burstRefused, may
	// come at once.
	maxPerSecond, maxRefusedPerSecond = 20, 2
	burstRefused                      = 64
	// maxHeader bounds the header of a request, in bytes.
	maxHeader = 64 << 10
	// headerTimeout is the time that a client has to send a header, and a server to answer a
	// handshake.
	headerTimeout = 10 * time.Second
	// idleTimeout ends connections without a request.
	idleTimeout = time.Minute
	// dialTimeout bounds the lookup of a name, and dialing its addresses.
	dialTimeout = 20 * time.Second
)

// Cause is the call that a process makes a connection for.
type Cause struct {
	// Call is its id; "" if no call is known to be the cause. User and Session are its caller's, or
	// those that the process belongs to.
	Call, User, Session string
	// PerDay is how many bytes the user may transfer in a day, if Connect is not nil; 0 means no bound.
	PerDay tool.ByteSize
	// Connect decides about a destination that the rules do not allow: it asks a person if wanted is
	// true, or notes the refusal. It returns who allowed the connection. nil refuses all.
	Connect func(ctx context.Context, to tool.Destination, wanted bool) (tool.Permission, *tool.Error)
	// Ended is closed when the call has ended, and with it what was allowed for it; nil never is.
	Ended <-chan struct{}
	// None is why no call is known to be the cause, for people and models.
	None string
}

// Options configure a [Proxy].
type Options struct {
	// Listener is the proxy's socket. Required. The proxy closes it.
	Listener net.Listener
	// Rules are the plugin's. Required.
	Rules *Rules
	// CauseOf returns the call that the process makes a connection for: the one with the ticket, or
	// the only one that it can be if ticket is nil. Required.
	CauseOf func(ticket []byte) Cause
	// Places bound its connections together with those of other proxies, of which it takes a quarter at
	// most; nil means only the bound of each.
	Places *Places
	// Quotas count the bytes of users over all proxies; nil counts none.
	Quotas *Quotas
	// Opened and Closed are told of each connection; a refused one is only closed. They must return
	// soon. Required.
	Opened, Closed func(Connection)
	// Authority is trusted by the process; required if Rules have credentials. SecretOf returns a
	// secret of a user; required if one of these is a user's.
	Authority *Authority
	SecretOf  func(ctx context.Context, user, name string) (string, *tool.Error)
	// Roots verify the servers that get credentials; nil means those of the system.
	Roots *x509.CertPool
	// Lookup returns the addresses of a host; nil uses the system's resolver. Dial connects to an
	// address; nil uses the system's network.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// Proxy serves the processes of one plugin's process. Create it with [New]; the caller closes it.
type Proxy struct {
	opts   Options
	server *http.Server
	served sync.WaitGroup
	pace   *rate.Limiter   // of new connections
	slow   *rate.Limiter   // of refusals
	ctx    context.Context //nolint:containedctx // the life of the proxy, for tunnels, which outlive their request
	stop   context.CancelFunc

	mu      sync.Mutex // guards the fields below
	live    map[int64]*connection
	last    int64 // number of a connection
	closing bool
}

// New starts a proxy, which goes on when ctx ends.
func New(ctx context.Context, opts Options) *Proxy {
	p := &Proxy{opts: opts, live: make(map[int64]*connection), pace: rate.NewLimiter(maxPerSecond, maxConnections), slow: rate.NewLimiter(maxRefusedPerSecond, burstRefused)}
	p.ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return p.ctx }, ErrorLog: hclog.NewNullLogger().StandardLogger(nil),
	}
	p.served.Go(func() { // ends at Close
		_ = p.server.Serve(limit(opts.Listener, maxConnections, opts.Places))
	})
	return p
}

// Close ends all connections and returns when they are closed.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	p.stop()
	_ = p.server.Close()
	p.served.Wait()
}

// Live returns the open connections.
func (p *Proxy) Live() []Connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Connection, 0, len(p.live))
	for _, c := range p.live {
		all = append(all, c.snapshot())
	}
	return all
}

// serve answers one request of a client.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		return
	}
	defer p.served.Done()
	if p.pace.Wait(r.Context()) != nil {
		return // the client is gone
	}
	ticket, err := ticketOf(r)
	if err != nil {
		fail(w, r, http.StatusProxyAuthRequired, err)
		return
	}
	c := &connection{proxy: p, cause: p.opts.CauseOf(ticket)}
	if r.Method == http.MethodConnect {
		c.connect(w, r)
		return
	}
	c.forward(w, r)
}

// enter adds a request that Close waits for; false if the proxy closes.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closing {
		p.served.Add(1)
	}
	return !p.closing
}

// ticketOf returns the ticket in the credentials of a request; nil if it has none.
func ticketOf(r *http.Request) ([]byte, error) {
	header := r.Header.Get("Proxy-Authorization")
	r.Header.Del("Proxy-Authorization")
	if header == "" {
		return nil, nil
	}
	wrong := errors.New("the credentials are not those of a call")
	encoded, ok := strings.CutPrefix(header, "Basic ")
	if !ok {
		return nil, wrong
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, wrong
	}
	user, password, _ := strings.Cut(string(text), ":")
	ticket, err := base64.RawURLEncoding.DecodeString(password)
	if err != nil || user != proxy.User || len(ticket) == 0 {
		return nil, wrong
	}
	return ticket, nil
}

// permit decides about a destination, and asks a person if the rules say so. It returns nil if the
// process may connect.
func (c *connection) permit(ctx context.Context, to Target) *tool.Error {
	d := c.proxy.opts.Rules.Decide(to)
	c.decided(to, d)
	if used := c.exhausted(); used != nil && d.Verdict != Deny {
		if c.cause.Connect != nil { // the call learns of it
			_, _ = c.cause.Connect(ctx, tool.Destination{Host: to.Host, Port: to.Port, Reason: used.Message}, false)
		}
		return used
	}
	if d.Verdict == Allow {
		return nil
	}
	refused := refusal(to, d.Reason)
	wanted := d.Verdict == Ask
	if c.cause.Connect == nil {
		if wanted {
			refused = refusal(to, c.cause.None).WithHint("add it to network.allow of the plugin, in the configuration")
		}
		return refused
	}
	by, err := c.cause.Connect(ctx, tool.Destination{Host: to.Host, Port: to.Port, Reason: d.Reason}, wanted)
	if !wanted { // it is only noted
		return refused
	}
	c.answered(by)
	if err != nil {
		return err
	}
	return nil
}

// exhausted returns an error if the user's quota is used up. A call brings the quota; connections
// besides calls count towards the last one.
func (c *connection) exhausted() *tool.Error {
	quotas := c.proxy.opts.Quotas
	if c.cause.Connect != nil {
		quotas.set(c.cause.User, c.cause.PerDay)
	}
	return quotas.use(c.cause.User, 0)
}

func refusal(to Target, reason string) *tool.Error {
	return tool.Errorf(tool.PermissionDenied, "no connection to %s: %s", to, reason)
}

// dial connects to a destination that is permitted.
func (c *connection) dial(ctx context.Context, to Target) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := guard.Dialer{Guard: judge{c.proxy.opts.Rules, to.Port}, Lookup: c.proxy.opts.Lookup, Dial: c.proxy.opts.Dial}
	conn, err := dialer.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	c.dialed(conn)
	return conn, nil
}
