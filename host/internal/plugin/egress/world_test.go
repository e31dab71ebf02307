package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	"github.com/toolhost/toolhost/sdk/guard"
	"github.com/toolhost/toolhost/sdk/tool"
)

// public is the address of every name that a world says nothing of.
const public = "93.184.215.14"

// patience is how long a test waits for an immediate event.
const patience = 30 * time.Second

// world is an internet on loopback: names lead to addresses as it says, public addresses to servers
// of the test, and all others to a trap. The proxy is the way to it.
type world struct {
	t       *testing.T
	proxy   *egress.Proxy
	address string                  // of the proxy
	closed  chan egress.Connection  // what became of each connection
	cause   atomic.Pointer[causeOf] // nil: no call is known
	handler atomic.Pointer[http.HandlerFunc]
	raw     atomic.Pointer[func(net.Conn)] // serves the ports besides 80 and 443; nil repeats what it reads

	plain, encrypted *httptest.Server
	others, trap     net.Listener
	serving          sync.WaitGroup

	mu       sync.Mutex
	names    map[string][][]string // the addresses of a name, look-up by look-up; the last one stays
	lookups  map[string]int
	dialed   []string
	requests []request // that arrived at a server
	trapped  []string  // what the trap got
	opened   int
}

type causeOf = func(ticket []byte) egress.Cause

// request is a request as a server sees it.
type request struct {
	method, uri, host, body string
	header                  http.Header
}

// newWorld starts the servers, and a proxy with rules in front of them.
func newWorld(t *testing.T, rules *egress.Rules, edit ...func(*egress.Options)) *world {
	t.Helper()
	w := &world{
		t: t, closed: make(chan egress.Connection, 8192), names: map[string][][]string{}, lookups: map[string]int{},
	}
	w.plain = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	w.encrypted = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	quiet := hclog.NewNullLogger().StandardLogger(nil)
	w.plain.Config.ErrorLog, w.encrypted.Config.ErrorLog = quiet, quiet
	w.plain.Start()
	w.encrypted.StartTLS()
	w.others, w.trap = listen(t), listen(t)
	w.serving.Go(func() { w.accept(w.others, w.serveRaw) })
	w.serving.Go(func() { w.accept(w.trap, w.spring) })
	opts := egress.Options{
		Listener: listen(t), Rules: rules, Lookup: w.lookup, Dial: w.dial,
		Opened: func(egress.Connection) { w.locked(func() { w.opened++ }) },
		Closed: func(c egress.Connection) { w.closed <- c },
		CauseOf: func(ticket []byte) egress.Cause {
			if of := w.cause.Load(); of != nil {
				return (*of)(ticket)
			}
			return egress.Cause{None: "no call runs"}
		},
	}
	for _, change := range edit {
		change(&opts)
	}
	w.address = opts.Listener.Addr().String()
	w.proxy = egress.New(t.Context(), opts)
	t.Cleanup(func() {
		w.proxy.Close()
		for _, s := range []*httptest.Server{w.plain, w.encrypted} {
			s.CloseClientConnections()
			s.Close()
		}
		_, _ = w.others.Close(), w.trap.Close()
		w.serving.Wait()
	})
	return w
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rules returns rules that allow destinations.
func rules(t *testing.T, allow ...string) *egress.Rules {
	t.Helper()
	return &egress.Rules{Allow: destinations(t, allow...)}
}

func (w *world) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// accept serves the connections of a listener until it is closed, and closes those that are left.
func (w *world) accept(l net.Listener, serve func(net.Conn)) {
	var mu sync.Mutex
	var open []net.Conn
	for {
		conn, err := l.Accept()
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			for _, conn := range open {
				_ = conn.Close()
			}
			return
		}
		mu.Lock()
		open = append(open, conn)
		mu.Unlock()
		w.serving.Go(func() { // ends with the connection
			defer func() { _ = conn.Close() }()
			serve(conn)
		})
	}
}

// serveRaw answers on a port that speaks neither HTTP nor TLS.
func (w *world) serveRaw(conn net.Conn) {
	if serve := w.raw.Load(); serve != nil {
		(*serve)(conn)
		return
	}
	_, _ = io.Copy(conn, conn)
}

// spring notes what the trap got, and answers like a web server.
func (w *world) spring(conn net.Conn) {
	head := make([]byte, 4096)
	n, _ := conn.Read(head)
	w.locked(func() { w.trapped = append(w.trapped, string(head[:n])) })
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret")
}

func (w *world) serve(out http.ResponseWriter, r *http.Request) {
	body := ""
	if handler := w.handler.Load(); handler != nil {
		w.note(r, body)
		(*handler)(out, r)
		return
	}
	text, _ := io.ReadAll(r.Body)
	w.note(r, string(text))
	_, _ = io.WriteString(out, "hello")
}

func (w *world) note(r *http.Request, body string) {
	w.locked(func() {
		w.requests = append(w.requests, request{r.Method, r.RequestURI, r.Host, body, r.Header.Clone()})
	})
}

// speak serves the ports that speak neither HTTP nor TLS.
func (w *world) speak(serve func(net.Conn)) { w.raw.Store(&serve) }

// handle answers the requests of both servers.
func (w *world) handle(handler http.HandlerFunc) { w.handler.Store(&handler) }

func (w *world) lookup(_ context.Context, host string) ([]netip.Addr, error) {
	host = strings.TrimSuffix(host, ".")
	w.mu.Lock()
	defer w.mu.Unlock()
	answers := w.names[host]
	if answers == nil {
		answers = [][]string{{public}}
	}
	n := min(w.lookups[host], len(answers)-1)
	w.lookups[host]++
	var ips []netip.Addr
	for _, text := range answers[n] {
		ips = append(ips, netip.MustParseAddr(text))
	}
	return ips, nil
}

// dial connects to the server that stands for an address.
func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.locked(func() { w.dialed = append(w.dialed, address) })
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s %q, which is no address", network, address)
	}
	where := w.trap
	switch {
	case guard.Public(to.Addr()) != nil:
	case to.Port() == 80:
		where = w.plain.Listener
	case to.Port() == 443:
		where = w.encrypted.Listener
	default:
		where = w.others
	}
	return new(net.Dialer).DialContext(ctx, "tcp", where.Addr().String())
}

// arrived returns the requests that servers have received, and what the trap has got.
func (w *world) arrived() (requests []request, trapped []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests), slices.Clone(w.trapped)
}

// dials returns the addresses that the proxy has dialed.
func (w *world) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialed)
}

// next returns what became of the next connection.
func (w *world) next() egress.Connection {
	w.t.Helper()
	ctx, done := context.WithTimeout(w.t.Context(), patience)
	defer done()
	select {
	case c := <-w.closed:
		return c
	case <-ctx.Done():
	}
	w.t.Fatal("no connection was reported")
	return egress.Connection{}
}

// connect opens a connection to the proxy.
func (w *world) connect() net.Conn {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// say sends a text to the proxy and returns all that it answers until it closes the connection, or
// makes a tunnel, which say closes.
func (w *world) say(text string) string {
	w.t.Helper()
	conn := w.connect()
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, text)
	return answerOf(conn)
}

// answerOf reads until the proxy closes the connection, or makes a tunnel.
func answerOf(conn net.Conn) string {
	var answer []byte
	for piece := make([]byte, 4096); !strings.HasPrefix(string(answer), established); {
		n, err := conn.Read(piece)
		answer = append(answer, piece[:n]...)
		if err != nil {
			break
		}
	}
	return string(answer)
}

// established is the answer of a proxy that has made a tunnel.
const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// allowing has a person allow each connection of one call.
func (w *world) allowing() {
	of := func([]byte) egress.Cause {
		return egress.Cause{Call: "c1", User: "ann", Session: "s1", Connect: func(context.Context, tool.Destination, bool) (tool.Permission, *tool.Error) {
			return tool.Permission{By: "user", Approval: "ap_1", Approver: "bea"}, nil
		}}
	}
	w.cause.Store(&of)
}

// tunnel asks for a tunnel to a destination. It returns the connection, and the status of an answer
// other than 200.
func (w *world) tunnel(to string, headers ...string) (*tunnel, string) {
	w.t.Helper()
	conn := w.connect()
	_, _ = io.WriteString(conn, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n"+strings.Join(headers, "")+"\r\n")
	from := bufio.NewReader(conn)
	answer, err := http.ReadResponse(from, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return &tunnel{conn, from}, err.Error()
	}
	if answer.StatusCode != http.StatusOK {
		return &tunnel{conn, from}, answer.Status
	}
	return &tunnel{conn, from}, ""
}

// tunnel is a connection of which a part has been read.
type tunnel struct {
	net.Conn

	from *bufio.Reader
}

func (c *tunnel) Read(b []byte) (int, error) { return c.from.Read(b) }

// CloseWrite ends what the client says.
func (c *tunnel) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

// rest returns what the tunnel carries until it ends.
func (c *tunnel) rest() string {
	text, _ := io.ReadAll(c)
	return string(text)
}

// client returns a client of HTTP that uses the proxy. It takes every certificate: who a server is
// is no matter of the proxy.
func (w *world) client() *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.address}), TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// connectFunc returns the function of a call that decides about connections.
func connectFunc(decide func(to tool.Destination, wanted bool) (tool.Permission, *tool.Error)) func(context.Context, tool.Destination, bool) (tool.Permission, *tool.Error) {
	return func(_ context.Context, to tool.Destination, wanted bool) (tool.Permission, *tool.Error) {
		return decide(to, wanted)
	}
}
