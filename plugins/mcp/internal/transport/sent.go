package transport

import (
	"context"
	"sync/atomic"
)

// Sent tells whether requests with a context have been passed to the server. A request that was not has
// certainly had no effect; errors of the connection do not tell, because a server can imitate them.
type Sent struct{ sent atomic.Bool }

type sentKey struct{}

// WithSent returns a context whose requests are noted in s.
func WithSent(ctx context.Context, s *Sent) context.Context {
	return context.WithValue(ctx, sentKey{}, s)
}

// Any reports whether a request has been passed to the server, or may have been.
func (s *Sent) Any() bool { return s.sent.Load() }

// note notes a request with ctx.
func note(ctx context.Context) {
	if s, ok := ctx.Value(sentKey{}).(*Sent); ok {
		s.sent.Store(true)
	}
}
