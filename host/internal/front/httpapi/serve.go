package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of a listener.
const (
	maxHeader      = 32 * tool.KiB
	maxHeaderTime  = 10 * time.Second
	maxIdle        = 30 * time.Second
	maxConnections = 1024 // further ones wait to be accepted
	// maxUnauthenticated bounds the connections without a request with a valid token. One
	// more closes the oldest of them.
	maxUnauthenticated = maxConnections / 2
	maxAtOnce          = 128 // requests of one credential; further ones are refused
	maxStreams         = 256 // open streams of one credential
	maxAllStreams      = 512 // open streams in all, so that other connections have room
	maxStop            = 5 * time.Second
)

// Serve answers the requests of a network listener until ctx ends. Then it tells waiting
// clients that the host is stopping, and returns when all requests are answered, or cut
// off after 5 seconds. The pipeline ends running calls. Serve closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	limited := newLimitListener(l, s.connections.all, s.connections.unauthenticated, func() {
		s.complaints.Do(func() { s.opts.Logger.Warn("closed a connection without a token: too many are open") })
	})
	return s.serve(ctx, limited, s.opts.TLS, s.network, withConn)
}

// ServeControl is [Server.Serve] for the control socket.
func (s *Server) ServeControl(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, newLimitListener(l, maxConnections, 0, nil), nil, s.control, func(ctx context.Context, conn net.Conn) context.Context {
		if limited, ok := conn.(*limitedConn); ok {
			conn = limited.Conn
		}
		return context.WithValue(ctx, peerKey{}, peer{auth.CheckPeer(conn)})
	})
}

// serve serves HTTP, or HTTPS if secure is not nil.
func (s *Server) serve(ctx context.Context, l net.Listener, secure *tls.Config, handler http.Handler, connected func(context.Context, net.Conn) context.Context) error {
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var answering sync.WaitGroup
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answering.Add(1)
			defer answering.Done()
			if r.ContentLength != 0 { // a handler that reads the body sets its own
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.timing.header))
			}
			handler.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: s.timing.header,
		IdleTimeout:       maxIdle,
		MaxHeaderBytes:    int(maxHeader),
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       connected,
		TLSConfig:         secure,
		ErrorLog:          s.opts.Logger.StandardLogger(nil),
	}
	server.ErrorLog.SetFlags(0)
	server.ErrorLog.SetOutput(&complaintWriter{s})
	ended := make(chan error, 1)
	go func() { // until Shutdown, waited for below
		if secure != nil {
			ended <- server.ServeTLS(l, "", "")
			return
		}
		ended <- server.Serve(l)
	}()
	select {
	case err := <-ended:
		stop(operation.ErrStopping)
		return errors.Join(fmt.Errorf("serve %s: %w", l.Addr(), err), server.Close())
	case <-ctx.Done():
	}
	stop(operation.ErrStopping)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxStop)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		_ = server.Close() // cut off
	}
	err := <-ended
	answering.Wait() // their contexts have ended
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// complaintWriter logs what [http.Server] says about connections, which clients cause: not
// each line of many.
type complaintWriter struct{ s *Server }

// Write implements [io.Writer].
func (w *complaintWriter) Write(line []byte) (int, error) {
	w.s.complaints.Do(func() { w.s.opts.Logger.Info(excerpt.Printable(strings.TrimSpace(string(line)), maxShown)) })
	return len(line), nil
}

// waitEnd returns the reason why the wait of a request ended: that the host is stopping,
// or, for the log only, that the client is gone.
func waitEnd(ctx context.Context) error {
	if stopped(ctx) {
		return unavailable.problem("the host is stopping").hint("repeat the request when the host runs again")
	}
	return context.Cause(ctx)
}

// stopped reports whether the context of a request has ended because the host stops.
func stopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), operation.ErrStopping) }
