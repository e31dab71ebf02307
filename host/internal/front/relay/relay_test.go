package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/front/lines"
	"github.com/toolhost/toolhost/host/internal/front/relay"
)

// patience bounds every wait of a test.
const patience = 20 * time.Second

// side is one end of a pair of streams, for the test.
type side struct {
	t   *testing.T
	out io.WriteCloser
	in  chan string // closed at the end
}

func newSide(t *testing.T, in io.Reader, out io.WriteCloser) *side {
	t.Helper()
	s := &side{t, out, make(chan string, 100)}
	go func() { // ends with in
		defer close(s.in)
		r := lines.NewReader(in, 100<<20)
		for {
			line, err := r.Next()
			if err != nil {
				return
			}
			s.in <- string(line)
		}
	}()
	return s
}

// says writes a line.
func (s *side) says(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.out, line+"\n"); err != nil {
		s.t.Fatalf("say %.80s: %v", line, err)
	}
}

// hears reads a line, which must contain want.
func (s *side) hears(want ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	select {
	case line, ok := <-s.in:
		for _, w := range want {
			if !ok || !strings.Contains(line, w) {
				s.t.Fatalf("heard %.300q, want %q", line, want)
			}
		}
		return line
	case <-ctx.Done():
		s.t.Fatalf("heard nothing, want %q", want)
		return ""
	}
}

// served is a client that is relayed to scripted hosts.
type served struct {
	*side

	t       *testing.T
	relay   *relay.Relay
	serving sync.WaitGroup
}

func newServed(t *testing.T) *served {
	t.Helper()
	in, says := io.Pipe()
	hears, out := io.Pipe()
	r := relay.New(in, out)
	c := &served{side: newSide(t, hears, says), t: t, relay: r}
	t.Cleanup(func() {
		c.serving.Wait() // the test's context has ended
		r.Close()
		for _, c := range []io.Closer{says, hears, in, out} {
			_ = c.Close() // a pipe's never fails
		}
	})
	return c
}

// scripted is a host in the hands of a test.
type scripted struct {
	*side

	pipe  *hostSide
	ended chan error
}

// host lets a host serve the client from now on.
func (c *served) host(ctx context.Context) *scripted {
	conn, host := newPipe()
	h := &scripted{newSide(c.t, host.In, host.Out), host, make(chan error, 1)}
	c.serving.Go(func() { h.ended <- c.relay.Serve(ctx, conn) }) // ends with the host, or ctx
	return h
}

// end returns what Serve has said when it ended.
func (h *scripted) end() error {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	select {
	case err := <-h.ended:
		return err
	case <-ctx.Done():
		h.t.Fatal("Serve has not ended")
		return nil
	}
}

// goes ends the host; the relay must notice.
func (h *scripted) goes() {
	h.t.Helper()
	_ = h.pipe.Close() // a pipe's never fails
	if err := h.end(); !errors.Is(err, relay.ErrGone) {
		h.t.Fatalf("after the end of its host Serve = %v, want %v", err, relay.ErrGone)
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// idOf returns the id of a message, in its original form.
func idOf(t *testing.T, line string) string {
	t.Helper()
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatal(err)
	}
	return string(m.ID)
}

// answer is a result for a request.
func answer(id, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// begins begins a session at the first host.
func (c *served) begins(h *scripted) {
	c.t.Helper()
	c.says(initialize)
	h.hears("initialize")
	h.says(answer("1", `{"protocolVersion":"2025-11-25"}`))
	c.hears(`"id":1`)
	c.says(initialized)
	h.hears("notifications/initialized")
}

// TestSessionGoesOn starts the session again at the next host. The client learns only that tools
// may differ.
func TestSessionGoesOn(t *testing.T) {
	c := newServed(t)
	first := c.host(t.Context())
	c.begins(first)
	first.goes()
	for range 2 {
		next := c.host(t.Context())
		id := idOf(t, next.hears(`"method":"initialize"`, `"protocolVersion":"2025-11-25"`))
		if id == "1" {
			t.Error("the id of the client is used for a request of the relay")
		}
		next.says(answer(id, `{"protocolVersion":"2025-11-25"}`))
		next.hears("notifications/initialized")
		c.hears("notifications/tools/list_changed")
		c.says(`{"jsonrpc":"2.0","id":1,"method":"ping"}`) // the id may be used again
		next.hears("ping")
		next.says(answer("1", `{}`))
		c.hears(`"id":1`, `"result":{}`)
		next.goes()
	}
}

// TestNextHostRefuses ends the relay when the session cannot continue.
func TestNextHostRefuses(t *testing.T) {
	for _, tt := range []struct{ name, answer, want string }{
		{"it says no", `"error":{"code":-32600,"message":"go away"}`, "go away"},
		{"another revision", `"result":{"protocolVersion":"2024-11-05"}`, "speaks revision 2024-11-05, the client 2025-11-25"},
		{"no revision", `"result":{}`, "names no revision"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newServed(t)
			first := c.host(t.Context())
			c.begins(first)
			first.goes()
			next := c.host(t.Context())
			next.says(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, idOf(t, next.hears("initialize")), tt.answer))
			if err := next.end(); err == nil || errors.Is(err, relay.ErrGone) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Serve = %v, want %q", err, tt.want)
			}
		})
	}
}

// TestClientLeaves closes the client's input: the host answers the calls in progress, and the
// relay ends.
func TestClientLeaves(t *testing.T) {
	c := newServed(t)
	h := c.host(t.Context())
	c.says(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	h.hears("tools/call")
	if err := c.out.Close(); err != nil {
		t.Fatal(err)
	}
	if line, ok := <-h.in; ok {
		t.Fatalf("the host hears %q, want the end", line)
	}
	h.says(answer("1", `{}`))
	c.hears(`"result":{}`)
	_ = h.pipe.Close() // a pipe's never fails
	if err := h.end(); err != nil {
		t.Errorf("Serve = %v", err)
	}
	<-c.relay.Left()
}

// TestClientGone closes both directions of the client: the host loses its connection and the
// calls in progress.
func TestClientGone(t *testing.T) {
	in, says := io.Pipe()
	ears, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := relay.New(in, out)
	conn, pipe := newPipe()
	h := &scripted{newSide(t, pipe.In, pipe.Out), pipe, make(chan error, 1)}
	go func() { h.ended <- r.Serve(t.Context(), conn) }() // ends with the client
	t.Cleanup(func() {
		r.Close()
		_ = out.Close() // nothing of it is needed
	})
	if _, err := io.WriteString(says, request("1", "tools/call")+"\n"); err != nil {
		t.Fatal(err)
	}
	h.hears("tools/call")
	if err := errors.Join(says.Close(), ears.Close()); err != nil {
		t.Fatal(err)
	}
	if err := h.end(); err != nil {
		t.Errorf("Serve = %v", err)
	}
	if _, err := io.WriteString(h.pipe.Out, answer("1", "{}")); err == nil {
		t.Error("the host can still answer")
	}
}

// TestServeEndsWithItsContext ends a relay whose client reads nothing.
func TestServeEndsWithItsContext(t *testing.T) {
	in, says := io.Pipe()
	_, out := io.Pipe() // has no reader
	r := relay.New(in, out)
	defer r.Close()
	defer says.Close()
	conn, host := newPipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx, conn) }() // ends with ctx
	if _, err := io.WriteString(host.Out, answer("1", "{}")+"\n"); err != nil {
		t.Fatal(err)
	}
	cancel()
	late, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Serve = %v", err)
		}
	case <-late.Done():
		t.Error("Serve has not ended")
	}
}
