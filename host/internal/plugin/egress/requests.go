package egress

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/sdk/tool"
)

// requests answers the requests in a tunnel, of which the proxy sees the plain text: each goes to the
// destination of the tunnel, or nowhere. Those with credentials go over TLS. server is the connection
// for the first one, which requests closes.
func (c *connection) requests(client, server net.Conn, to Target, credentials []Credential) error {
	var failed error
	usual := uint16(80)
	if len(credentials) > 0 {
		usual = 443
	}
	var serving sync.WaitGroup // an upgraded connection leaves the server before it ends
	ends := newSingle(client)
	inner := http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // one at a time: HTTP/1.1
			serving.Add(1)
			defer serving.Done()
			if err := sameHost(r, to, usual); err != nil {
				failed = err
				fail(w, r, http.StatusForbidden, err)
				return
			}
			if err := c.addCredentials(r.Context(), r, to, credentials); err != nil {
				failed = err
				fail(w, r, http.StatusForbidden, err)
				return
			}
			conn := server
			server = nil
			if conn == nil {
				var err error
				if conn, err = c.dial(r.Context(), to); err != nil {
					failed = err
					fail(w, r, status(err), err)
					return
				}
			}
			failed = c.relay(w, r, to, len(credentials) > 0, conn)
		}),
		ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ErrorLog: hclog.NewNullLogger().StandardLogger(nil),
		BaseContext: func(net.Listener) context.Context { return c.proxy.ctx },
		ConnState:   ends.state,
	}
	_ = inner.Serve(ends) // until the client's connection has ended, or is upgraded
	serving.Wait()
	if server != nil {
		_ = server.Close()
	}
	return failed
}

// sameHost refuses a request in a tunnel for another host than that of the tunnel.
func sameHost(r *http.Request, to Target, usual uint16) *tool.Error {
	asked, err := ParseTarget(r.Host, usual)
	if err == nil && asked == to && r.URL.Host == "" && r.Method != http.MethodConnect {
		return nil
	}
	return refusal(to, fmt.Sprintf("a request in the connection names the host %q", r.Host))
}

// single is a listener with one connection. It ends with that connection.
type single struct {
	conn   net.Conn
	accept sync.Once
	over   chan struct{}
	end    sync.Once
}

func newSingle(conn net.Conn) *single { return &single{conn: conn, over: make(chan struct{})} }

// Accept implements [net.Listener].
func (s *single) Accept() (conn net.Conn, err error) {
	s.accept.Do(func() { conn = s.conn })
	if conn != nil {
		return conn, nil
	}
	<-s.over
	return nil, net.ErrClosed
}

// Close implements [net.Listener].
func (s *single) Close() error { return nil }

// Addr implements [net.Listener].
func (s *single) Addr() net.Addr { return s.conn.LocalAddr() }

// state ends the listener when its connection has ended.
func (s *single) state(_ net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		s.end.Do(func() { close(s.over) })
	}
}

// bufferedConn is a connection of which a part has been read.
type bufferedConn struct {
	net.Conn

	from *bufio.Reader
}

// Read implements [io.Reader].
func (b *bufferedConn) Read(p []byte) (int, error) { return b.from.Read(p) }
