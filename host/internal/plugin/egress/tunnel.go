package egress

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/sdk/guard"
)

// connect makes a tunnel to a server.
func (c *connection) connect(w http.ResponseWriter, r *http.Request) {
	to, err := ParseTarget(r.Host, 0)
	if err != nil {
		fail(w, r, http.StatusBadRequest, fmt.Errorf("CONNECT %s: %w", r.Host, err))
		return
	}
	server, ok := c.open(w, r, to)
	if !ok {
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = server.Close()
		c.closed(err)
		return
	}
	c.closed(c.tunnel(client, buffered.Reader, server, to))
}

// tunnel carries the bytes of both sides until both have ended, or the proxy closes.
func (c *connection) tunnel(client net.Conn, from *bufio.Reader, server net.Conn, to Target) error {
	stop := context.AfterFunc(c.proxy.ctx, func() {
		_, _ = client.Close(), server.Close()
	})
	defer stop()
	defer func() { _, _ = client.Close(), server.Close() }()
	credentials := c.proxy.opts.Rules.credentials(to)
	defer c.untilCallEnds(credentials, func() { _, _ = client.Close(), server.Close() })()
	_ = client.SetDeadline(time.Time{}) // of the header
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return nil // the client is gone
	}
	if len(credentials) > 0 || !c.raw { // the client speaks first
		_ = client.SetReadDeadline(time.Now().Add(idleTimeout))
		first, err := from.Peek(1)
		_ = client.SetReadDeadline(time.Time{})
		switch {
		case err != nil: // it has nothing to say
			return nil
		case first[0] == handshakeRecord && len(credentials) > 0:
			return c.inject(&bufferedConn{client, from}, server, to, credentials)
		case first[0] >= 'A' && first[0] <= 'Z': // the method of a request
			return c.requests(&bufferedConn{client, from}, server, to, nil)
		}
	}
	done := make(chan error, 1)
	go func() { // ends when the server has, or with the tunnel
		err := c.pipe(bare(client), server, &c.received)
		if err != nil {
			_ = client.Close() // its reader
		}
		done <- err
	}()
	err := c.fromClient(client, from, server, to)
	if err != nil {
		_, _ = client.Close(), server.Close()
	}
	c.sideOver(server)
	return cmp.Or(err, <-done)
}

// fromClient judges what the client says first, and carries its bytes to the server.
func (c *connection) fromClient(client net.Conn, from *bufio.Reader, server net.Conn, to Target) error {
	first, _ := from.Peek(1)
	var said []byte
	var err error
	switch {
	case len(first) == 0: // it has nothing to say
		closeWrite(server)
		return nil
	case first[0] == handshakeRecord:
		if said, err = c.hello(client, from, to); err != nil {
			return err
		}
	case !c.raw:
		return refusal(to, "only TLS and HTTP may be spoken there; an entry of network.allow with a port allows any protocol")
	default:
		said, _ = from.Peek(from.Buffered())
	}
	if _, err := server.Write(said); err != nil {
		return nil //nolint:nilerr // the server is gone
	}
	if err := c.count(&c.sent, int64(len(said))); err != nil {
		return err
	}
	return c.pipe(server, bare(client), &c.sent)
}

// handshakeRecord is the first byte of TLS.
const handshakeRecord = 22

// errHello ends a handshake when the first message has been read.
var errHello = errors.New("the first message has been read")

// hello reads the first message of a TLS handshake and returns its bytes. The server that the
// message names must be the destination: many servers share an address, and the name in the
// message selects one.
func (c *connection) hello(client net.Conn, from *bufio.Reader, to Target) ([]byte, error) {
	var read bytes.Buffer
	var name string
	_ = client.SetReadDeadline(time.Now().Add(headerTimeout))
	defer func() { _ = client.SetReadDeadline(time.Time{}) }()
	err := tls.Server(readOnly{Reader: io.TeeReader(from, &read)}, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name = hello.ServerName
			return nil, errHello
		},
	}).HandshakeContext(c.proxy.ctx)
	if !errors.Is(err, errHello) {
		return nil, refusal(to, "the client did not send a valid TLS handshake")
	}
	if to.ip.IsValid() && name == "" { // names only: RFC 6066, section 3
		return append(read.Bytes(), buffered(from)...), nil
	}
	if asked, err := guard.HostName(name); err != nil || asked != to.Host {
		return nil, refusal(to, fmt.Sprintf("the TLS handshake names the server %q", name))
	}
	return append(read.Bytes(), buffered(from)...), nil
}

// buffered returns what a reader has read ahead.
func buffered(from *bufio.Reader) []byte {
	ahead, _ := from.Peek(from.Buffered())
	return ahead
}

// readOnly is a connection that cannot be written.
type readOnly struct {
	net.Conn // nil

	io.Reader
}

// Read implements [io.Reader].
func (r readOnly) Read(b []byte) (int, error) { return r.Reader.Read(b) }

// Write implements [io.Writer].
func (readOnly) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Close, SetDeadline and the others have nothing to do.
func (readOnly) Close() error                     { return nil }
func (readOnly) LocalAddr() net.Addr              { return nil }
func (readOnly) RemoteAddr() net.Addr             { return nil }
func (readOnly) SetDeadline(time.Time) error      { return nil }
func (readOnly) SetReadDeadline(time.Time) error  { return nil }
func (readOnly) SetWriteDeadline(time.Time) error { return nil }

// pipe carries bytes until their source ends, and then ends the other side's input. The kernel
// carries them where both are TCP. A broken connection is an end. Once one side has ended, the other
// has a minute for its next bytes: a program that is gone says no more, and takes no more.
func (c *connection) pipe(to, from net.Conn, counter *atomic.Int64) error {
	defer func() {
		c.sideOver(to)
		closeWrite(to)
	}()
	for {
		if c.halfOver.Load() {
			_ = from.SetReadDeadline(time.Now().Add(idleTimeout))
		}
		n, err := io.CopyN(to, from, c.left())
		if over := c.count(counter, n); over != nil {
			return over
		}
		if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() && n > 0 {
			continue
		}
		if err != nil {
			return nil // an end
		}
	}
}

// sideOver bounds the wait for the next bytes of the other side: one side has ended.
func (c *connection) sideOver(other net.Conn) {
	c.halfOver.Store(true)
	_ = other.SetReadDeadline(time.Now().Add(idleTimeout))
}

// closeWrite tells the other side that nothing follows.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // it may be closed
		return
	}
	_ = conn.Close()
}
