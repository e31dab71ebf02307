package sdk

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/toolhost/toolhost/sdk/tool"
)

func codeOf(err error) tool.Code {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e.Code
	}
	return ""
}

// TestConnection shows how a request to the host can end.
func TestConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &connection{}
		if _, err := c.ask(t.Context(), hostRequest{}); codeOf(err) != tool.Unavailable {
			t.Errorf("ask without a host = %v, want code %q", err, tool.Unavailable)
		}
		sent := make(chan uint64, maxAsked+1)
		send := func(id uint64, _ hostRequest) error {
			sent <- id
			return nil
		}
		if !c.attach(send) || c.attach(send) {
			t.Error("a connection can be attached twice, or not at all")
		}

		asked := make(chan error, maxAsked+1)
		ask := func(ctx context.Context) {
			_, err := c.ask(ctx, hostRequest{})
			asked <- err
		}
		go ask(t.Context()) // ends with the answer
		id := <-sent
		c.deliver(id+1, hostReply{}) // no one is waiting for this id
		c.deliver(id, hostReply{err: tool.Errorf(tool.PermissionDenied, "no")})
		if err := <-asked; codeOf(err) != tool.PermissionDenied {
			t.Errorf("a refused request = %v, want code %q", err, tool.PermissionDenied)
		}

		ctx, cancel := context.WithCancel(t.Context())
		go ask(ctx) // ends with ctx
		id = <-sent
		cancel()
		if err := <-asked; codeOf(err) != tool.Canceled {
			t.Errorf("a request that was given up = %v, want code %q", err, tool.Canceled)
		}
		c.deliver(id, hostReply{}) // too late

		for range maxAsked {
			go ask(t.Context()) // ends with the connection
		}
		synctest.Wait()
		if _, err := c.ask(t.Context(), hostRequest{}); codeOf(err) != tool.ResourceExhausted {
			t.Errorf("request %d = %v, want code %q", maxAsked+1, err, tool.ResourceExhausted)
		}
		c.detach()
		for range maxAsked {
			if err := <-asked; codeOf(err) != tool.Unavailable {
				t.Errorf("a request when the host went = %v, want code %q", err, tool.Unavailable)
			}
		}
		if !c.attach(func(uint64, hostRequest) error { return errors.New("broken pipe") }) {
			t.Error("a host cannot come back")
		}
		if _, err := c.ask(t.Context(), hostRequest{}); codeOf(err) != tool.Unavailable {
			t.Errorf("a request that cannot be sent = %v, want code %q", err, tool.Unavailable)
		}
		c.detach()
	})
}

// TestConnectionThatIsNotRead shows that a question to a host that does not read ends with its
// context, whoever asked before it.
func TestConnectionThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &connection{}
		release := make(chan struct{})
		c.attach(func(uint64, hostRequest) error {
			<-release
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		asked := make(chan error, 2)
		for range cap(asked) {
			go func() { // ends with ctx
				_, err := c.ask(ctx, hostRequest{})
				asked <- err
			}()
		}
		synctest.Wait() // one is being sent, the other waits for it
		cancel()
		synctest.Wait()
		if len(asked) != cap(asked) {
			t.Errorf("%d of %d requests end with their context", len(asked), cap(asked))
		}
		for len(asked) > 0 {
			if err := <-asked; codeOf(err) != tool.Canceled {
				t.Errorf("a request that was given up = %v, want code %q", err, tool.Canceled)
			}
		}
		close(release)
		c.detach()
	})
}
