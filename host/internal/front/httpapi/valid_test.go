package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// TestCredentialIsLookedAtAgain revokes the credential of a long request: the host checks it
// repeatedly, and stops when the request has ended.
func TestCredentialIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = 15 * time.Second
		var looks atomic.Int32
		var revoked atomic.Bool
		ann := auth.Caller{User: "ann", Roles: auth.Agent}
		r := &request{
			Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/mcp", nil), caller: ann,
			identify: func(*http.Request) (auth.Caller, error) {
				looks.Add(1)
				if revoked.Load() {
					return auth.Caller{}, errors.New("it does not count any more")
				}
				return ann, nil
			},
		}
		s := &Server{}
		s.timing.keepAlive = every
		ctx, end := s.whileValid(r)
		defer end()
		<-time.After(10*every + time.Second)
		synctest.Wait()
		if ctx.Err() != nil || looks.Load() != 10 {
			t.Fatalf("after ten times %v: %v, and %d looks; want that the request goes on, and 10", every, ctx.Err(), looks.Load())
		}
		revoked.Store(true)
		<-time.After(every)
		synctest.Wait()
		if got := context.Cause(ctx); !errors.Is(got, errRevoked) {
			t.Errorf("after the credential was taken away the request ends with %v, want %v", got, errRevoked)
		}
		<-time.After(10 * every)
		synctest.Wait()
		if looks.Load() != 11 {
			t.Errorf("the credential was looked at %d times, want 11: not after the end", looks.Load())
		}
	})
}

// TestCredentialIsNotLookedAtAfterTheEnd ends a request by itself.
func TestCredentialIsNotLookedAtAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		r := &request{
			Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/mcp", nil),
			identify: func(*http.Request) (auth.Caller, error) {
				looks.Add(1)
				return auth.Caller{}, nil
			},
		}
		s := &Server{}
		s.timing.keepAlive = time.Second
		_, end := s.whileValid(r)
		<-time.After(1500 * time.Millisecond)
		end()
		<-time.After(time.Minute)
		synctest.Wait()
		if looks.Load() != 1 {
			t.Errorf("the credential was looked at %d times, want once", looks.Load())
		}
	})
}
