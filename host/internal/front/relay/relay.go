// Package relay keeps an MCP client connected while its hosts come and go. It passes
// messages between the client's streams and one host after another. When a host ends, the
// relay answers the open requests, or repeats those that have no effect. It never sends a
// call twice.
package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/front/lines"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxLine bounds one message from the client. A host that reads from the client
	// itself has the same bound.
	maxLine = 8 * tool.MiB
	// maxAnswer bounds one message from a host.
	maxAnswer = 64 * tool.MiB
	// maxWelcome bounds how long a host may take to take over a client.
	maxWelcome = 15 * time.Second
	// maxFarewell bounds how long a leaving host may take for its last answers after its
	// calls have ended. It is longer than a host gives itself.
	maxFarewell = 15 * time.Second
	// maxGrace bounds the grace period that a leaving host may announce.
	maxGrace = 10 * time.Minute
	// maxUnread bounds how long a client may leave its last answers unread.
	maxUnread = time.Second
	// lookEvery is the time between two checks whether a client that sends nothing more
	// still reads answers.
	lookEvery = time.Second
)

// Leaving is the method of a notification by which a host announces its end. The relay
// then closes its side, and the host answers everything that it has received before it
// closes its own. So no call is lost between the two.
const Leaving = "notifications/toolhost/leaving"

// Farewell returns the notification of a host whose calls continue for grace at most.
func Farewell(grace time.Duration) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"grace_ms":%d}}`, Leaving, grace.Milliseconds())
}

// graceOf returns the grace period in a farewell.
func graceOf(farewell []byte) time.Duration {
	var m struct {
		Params struct {
			GraceMS int64 `json:"grace_ms"`
		} `json:"params"`
	}
	if json.Unmarshal(farewell, &m) != nil || m.Params.GraceMS < 0 || m.Params.GraceMS > maxGrace.Milliseconds() {
		return 0
	}
	return time.Duration(m.Params.GraceMS) * time.Millisecond
}

// ErrGone means that the host has ended and its client is still connected.
var ErrGone = errors.New("the host that served this client has ended")

// ErrStopped is an [ErrGone] of a host that had announced its end.
var ErrStopped = fmt.Errorf("%w, as it had announced", ErrGone)

var (
	errLeft    = errors.New("the client has closed its side")
	errLeaving = errors.New("the host is leaving")
)

// Conn is a connection to a host, one JSON-RPC message per line.
type Conn interface {
	io.ReadWriteCloser
	// CloseWrite ends the messages to the host. Its answers may follow.
	CloseWrite() error
}

// host is the host that serves now.
type host struct {
	Conn

	number  int             // counted from 1
	gone    <-chan struct{} // closed when the host is gone
	leaving chan struct{}   // closed by leave, when the host announces its end
	leave   func()
	grace   time.Duration // how long its calls then continue at most; set before leaving is closed
}

// isLeaving reports whether the host has announced its end.
func (h *host) isLeaving() bool {
	select {
	case <-h.leaving:
		return true
	default:
		return false
	}
}

// Relay serves one client with one host after another.
type Relay struct {
	client   *client
	requests requests
	session  session
	hosts    int // so far
}

// New returns a relay for the client behind a pair of streams. The caller must Close it.
// A waiting read of in cannot be interrupted; it lasts until in ends.
func New(in io.Reader, out io.Writer) *Relay {
	return &Relay{client: newClient(in, out)}
}

// Serve lets a host serve the client, beginning with the open requests of the host before.
// It returns nil when the client has closed its side and has its answers, or does not read
// them, or when ctx ends. It returns [ErrGone] or [ErrStopped] if the host ends first, and
// another error if the host does not take over the client, or an answer cannot be written.
// It closes the connection.
func (r *Relay) Serve(ctx context.Context, conn Conn) error {
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(serving, func() { _ = conn.Close() })()
	r.hosts++
	h := &host{Conn: conn, number: r.hosts, gone: serving.Done(), leaving: make(chan struct{})}
	h.leave = sync.OnceFunc(func() { close(h.leaving) })

	delivered := make(chan error, 1)
	go func() { // ends with the connection, waited for below
		err := r.deliver(h)
		cancel()
		delivered <- err
	}()
	err := r.welcome(ctx, h)
	if err == nil {
		err = r.forward(ctx, h)
	}
	switch {
	case errors.Is(err, errLeaving):
		defer time.AfterFunc(h.grace+maxFarewell, cancel).Stop()
		err = ErrGone
	case errors.Is(err, errLeft):
		go r.endWithClient(serving, cancel) // ends with serving
	case !errors.Is(err, ErrGone):
		cancel()
	}
	answering := <-delivered // after the host's last messages
	end := ErrGone
	if h.isLeaving() {
		end = ErrStopped
		r.requests.spare()
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case answering != nil && !errors.Is(answering, ErrGone):
		return answering
	case errors.Is(err, errLeft):
		return nil // Close answers the open requests
	case errors.Is(err, ErrGone):
		return cmp.Or(r.answerLost(ctx.Done(), r.requests.lose()), end)
	}
	return err
}

// endWithClient ends the service of a client that has closed its input, as soon as that client
// stops reading answers as well. It returns when serving has ended.
func (r *Relay) endWithClient(serving context.Context, end func()) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-serving.Done():
			return
		case <-tick.C:
			if lines.Gone(r.client.out) {
				end()
			}
		}
	}
}

// Left is closed when the client has closed its side and all its messages are read.
func (r *Relay) Left() <-chan struct{} { return r.client.left }

// Close ends the relay after Serve has returned. It answers the open requests, if the
// client reads the answers soon.
func (r *Relay) Close() {
	soon := make(chan struct{})
	defer time.AfterFunc(maxUnread, func() { close(soon) }).Stop()
	_ = r.answerLost(soon, r.requests.all()) // the client may be gone
	r.client.close()
}

// welcome makes a host take over from the one before: the session of the client, and the
// requests that can be repeated.
func (r *Relay) welcome(ctx context.Context, h *host) error {
	var ready []byte
	if replay, again := r.session.replay(); again {
		if err := send(h, replay); err != nil {
			return err
		}
		if err := r.session.replayed(h.gone); err != nil {
			return err
		}
		if ready = r.session.initialized(); ready != nil {
			if err := send(h, ready); err != nil {
				return err
			}
		}
	}
	for _, q := range r.requests.all() {
		if h.isLeaving() {
			break
		}
		if err := r.ask(h, q); err != nil {
			return err
		}
	}
	if ready == nil {
		return nil
	}
	// The next host may have other tools.
	return r.client.write(ctx.Done(), []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
}

// forward passes the messages of the client to the host.
func (r *Relay) forward(ctx context.Context, h *host) error {
	for {
		select {
		case <-h.gone:
			return ErrGone
		case <-h.leaving:
			return errors.Join(h.CloseWrite(), errLeaving)
		case line, ok := <-r.client.lines:
			if !ok {
				return errors.Join(h.CloseWrite(), errLeft)
			}
			if err := r.pass(ctx, h, line); err != nil {
				return err
			}
		}
	}
}

// pass passes one message of the client to the host.
func (r *Relay) pass(ctx context.Context, h *host, line []byte) error {
	m := parse(line)
	switch {
	case m.isRequest():
		q, err := r.requests.begin(m, line)
		if err != nil {
			return r.client.write(ctx.Done(), failure(m.ID, tool.ResourceExhausted, err.Error()))
		}
		return r.ask(h, q)
	case m.isAnswer():
		var asked bool
		if line, asked = answerTo(h.number, m, line); !asked {
			return nil
		}
	case m.Method == "notifications/cancelled":
		r.requests.cancel(line) // the client does not wait for the answer
	case m.Method == "notifications/initialized":
		r.session.noteInitialized(line)
	}
	return send(h, line)
}

// ask sends a request.
func (r *Relay) ask(h *host, q *request) error {
	n, err := h.Write(append(q.line, '\n'))
	r.requests.sent(q, n)
	if err != nil {
		return ErrGone
	}
	return nil
}

// send sends a message without an answer.
func send(h *host, line []byte) error {
	if _, err := h.Write(append(line, '\n')); err != nil {
		return ErrGone
	}
	return nil
}

// deliver passes the messages of the host to the client.
func (r *Relay) deliver(h *host) error {
	in := lines.NewReader(h, int(maxAnswer))
	for {
		line, err := in.Next()
		if errors.Is(err, lines.ErrTooLong) {
			return fmt.Errorf("relay MCP: the host sent a message of more than %s", maxAnswer)
		}
		if err != nil {
			return ErrGone
		}
		m := parse(line)
		switch {
		case !m.readable: // cut by the end of the host
			continue
		case m.isAnswer() && r.session.takes(m, line):
			continue
		case m.isAnswer():
			if q := r.requests.end(m.ID); q != nil && q.method == "initialize" {
				r.session.note(q.line, line)
			}
		case m.isRequest():
			line = questionOf(h.number, m, line)
		case m.Method == Leaving:
			if !h.isLeaving() {
				h.grace = graceOf(line)
			}
			h.leave()
			continue
		case m.Method == "notifications/cancelled":
			line = cancellationOf(h.number, line)
		}
		if err := r.client.write(h.gone, line); err != nil && !errors.Is(err, lines.ErrGivenUp) {
			return fmt.Errorf("relay MCP: %w", err)
		}
	}
}

// answerLost answers requests in place of a host that is gone.
func (r *Relay) answerLost(giveUp <-chan struct{}, lost []*request) error {
	for _, q := range lost {
		r.requests.end(q.id)
		if err := r.client.write(giveUp, q.lost()); err != nil {
			return fmt.Errorf("relay MCP: %w", err)
		}
	}
	return nil
}
