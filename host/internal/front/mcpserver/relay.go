package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/relay"
)

// RelayProtocol is the protocol of an upgraded HTTP connection that carries MCP as over
// standard input and output. With it, a second process serves a client from the host that owns
// the state directory.
const RelayProtocol = "toolhost-mcp-stdio"

// EphemeralHeader is "true" in the answer of a host that runs for one command only. Such a
// host is not started again after it has ended.
const EphemeralHeader = "Toolhost-Ephemeral"

// maxFarewell bounds how long a stopping host keeps serving a relayed client after the
// client's calls have ended.
const maxFarewell = 5 * time.Second

// ServeRelay answers a request for [RelayProtocol] and serves MCP over its connection until
// the client closes its side. When the host stops or the request's context ends, it asks the
// client to close and still answers what was sent before. For who, see [Server.ServeStdio].
func (s *Server) ServeRelay(w http.ResponseWriter, r *http.Request, who func() (auth.Caller, error)) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), RelayProtocol) {
		w.Header().Set("Upgrade", RelayProtocol)
		http.Error(w, "expected the header Upgrade: "+RelayProtocol, http.StatusUpgradeRequired)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "this connection cannot be taken over", http.StatusNotImplemented)
		return
	}
	defer func() { _ = conn.Close() }() // the client has closed it already
	if err := accept(conn, s.opts.Ephemeral); err != nil {
		s.opts.Logger.Debug("a relayed client went away at once", "error", err)
		return
	}
	in, err := newRelayInput(conn, buffered.Reader)
	if err != nil {
		s.opts.Logger.Debug("a relayed client cannot be read", "error", err)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	var farewell sync.WaitGroup
	farewell.Go(func() { // ends with ctx
		defer cancel()
		select {
		case <-s.leaving:
			leave(ctx, conn, s.farewell, r.Context().Done())
		case <-r.Context().Done():
			leave(ctx, conn, 0, r.Context().Done())
		case <-ctx.Done():
		}
	})
	err = s.ServeStdio(ctx, in, conn, who)
	cancel()
	farewell.Wait()
	if err != nil {
		s.opts.Logger.Warn("a relayed client was served badly", "error", err)
	}
}

// leave tells a relayed client that the host is stopping, and waits until the client has its
// answers. Calls may continue for grace unless the host ends first; delivering the answers
// takes a few more seconds at most.
func leave(ctx context.Context, conn net.Conn, grace time.Duration, ended <-chan struct{}) {
	most := grace + maxFarewell
	if conn.SetWriteDeadline(time.Now().Add(most)) != nil {
		return // already closed
	}
	// One Write sends one line, so that it does not mix with answers.
	if _, err := fmt.Fprintln(conn, relay.Farewell(grace)); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	select {
	case <-ended:
	case <-ctx.Done():
		return
	}
	soon := time.NewTimer(maxFarewell)
	defer soon.Stop()
	select {
	case <-soon.C:
	case <-ctx.Done():
	}
}

// accept upgrades the connection to MCP and removes the HTTP server's deadlines.
func accept(conn net.Conn, ephemeral bool) error {
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %t\r\n\r\n",
		http.StatusSwitchingProtocols, http.StatusText(http.StatusSwitchingProtocols), RelayProtocol, EphemeralHeader, ephemeral)
	return err
}

// relayInput is the client's side of a connection.
type relayInput struct {
	io.Reader

	conn net.Conn
}

// newRelayInput begins with what the HTTP server has already read. The rest is read from the
// connection itself: through the server's reader, the end of the client's input would end the
// request's context before the answers are written.
func newRelayInput(conn net.Conn, ahead *bufio.Reader) (relayInput, error) {
	read, err := ahead.Peek(ahead.Buffered())
	if err != nil {
		return relayInput{}, err
	}
	return relayInput{io.MultiReader(bytes.NewReader(bytes.Clone(read)), conn), conn}, nil
}

var _ io.ReadCloser = relayInput{}

// Close implements [io.Closer]. The other direction stays open for answers.
func (i relayInput) Close() error {
	return i.conn.SetReadDeadline(time.Unix(1, 0)) // ends a Read under way
}
