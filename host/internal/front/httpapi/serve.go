package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of a listener.
const (
	maxHeader      = 32 * tool.KiB
	maxHeaderTime  = 10 * time.Second
	maxIdle        = 30 * time.Second
	maxConnections = 1024 // further ones wait to be accepted
	// maxUnauthenticated is how many connections may have had no request with a
	// token; for one more, the oldest of them is closed.
	maxUnauthenticated = maxConnections / 2
	maxAtOnce          = 128 // requests of one credential; it is told to come again later
	maxStreams         = 256 // held open by one credential's sessions
	maxAllStreams      = 512 // by all, so that there is room for other connections
	maxStop            = 5 * time.Second
)

// Serve answers what arrives at a network listener until ctx ends. Then it
// tells those who wait that the host is stopping, and returns when all requests
// are answered, or cut off after 5 seconds. Calls under way are the pipeline's
// to end. Serve closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	limited := newLimitListener(l, s.connections.all, s.connections.unauthenticated, func() {
		s.complaints.Do(func() { s.opts.Logger.Warn("a connection without a token was closed: too many are open") })
	})
	return s.serve(ctx, limited, s.network, withConn)
}

// ServeControl answers what arrives at the control socket, as [Server.Serve]
// does for the network.
func (s *Server) ServeControl(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, newLimitListener(l, maxConnections, 0, nil), s.control, func(ctx context.Context, conn net.Conn) context.Context {
		if limited, ok := conn.(*limitedConn); ok {
			conn = limited.Conn
		}
		return context.WithValue(ctx, peerKey{}, peer{auth.CheckPeer(conn)})
	})
}

func (s *Server) serve(ctx context.Context, l net.Listener, handler http.Handler, connected func(context.Context, net.Conn) context.Context) error {
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
		ErrorLog:          s.opts.Logger.StandardLogger(nil),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }() // until Shutdown, waited for below
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

// waitEnd says why a request's wait gave nothing: an error that the client can
// read if the host is stopping, and one that nobody reads if the client is
// gone.
func waitEnd(ctx context.Context) error {
	if stopped(ctx) {
		return unavailable().problem("the host is stopping").hint("ask again when it has started")
	}
	return context.Cause(ctx)
}

// stopped reports whether a request's context has ended because the host stops.
func stopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), operation.ErrStopping) }
