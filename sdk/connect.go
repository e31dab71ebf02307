package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxAsked bounds the requests to the host that wait for an answer.
const maxAsked = 256

// Secret returns the value of a secret that the administrator granted to the
// plugin (see [Plugin.WantSecrets]). It asks the host on behalf of this call
// and blocks until it answers or ctx ends. Do not keep the value: a grant can
// be taken back. Errors are [*tool.Error] and can be returned as they are.
func (c *Call) Secret(ctx context.Context, name string) (string, error) {
	if c.events == nil {
		return "", tool.Errorf(tool.PermissionDenied, "a preview gets no secrets")
	}
	reply, err := c.host.ask(ctx, hostRequest{ticket: c.data.Context.Ticket, secret: name})
	if err != nil {
		return "", err
	}
	return string(reply.secret), nil
}

// AskUser asks the user a question and decodes what is answered into answer, a
// pointer to a struct whose fields are of basic types and have the tags of
// [AddTool]; a field that need not be answered has omitempty or a default. It
// reports false if the user declined to answer. It blocks until there is an
// answer or ctx ends; the host stops the call's clock meanwhile.
//
// The user sees that the tool asks, and the answer is no approval of anything.
// A call has one question at a time and a few in all. Errors are [*tool.Error]
// and can be returned as they are, except for a wrong type of answer: code
// [tool.Unavailable] says that the client cannot ask its user, or that nobody
// has answered in time; go on without the answer if that is possible.
func (c *Call) AskUser(ctx context.Context, question string, answer any) (bool, error) {
	t := reflect.TypeOf(answer)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return false, fmt.Errorf("ask the user: the answer must be a pointer to a struct, not %T", answer)
	}
	if strings.TrimSpace(question) == "" {
		return false, errors.New("ask the user: the question is empty")
	}
	if c.events == nil {
		return false, tool.Errorf(tool.PermissionDenied, "a preview cannot ask the user")
	}
	form := infer(t.Elem(), arguments)
	if len(form.mistakes) > 0 {
		return false, fmt.Errorf("ask the user: %w", &form.mistakes[0])
	}
	reply, err := c.host.ask(ctx, hostRequest{ticket: c.data.Context.Ticket, question: question, form: form.schema})
	if err != nil || !reply.answered {
		return false, err
	}
	if missing := form.defaults.missing(reply.answer); missing != nil {
		if err := json.Unmarshal(missing, answer); err != nil {
			return false, fmt.Errorf("ask the user: set the defaults: %w", err)
		}
	}
	if err := json.Unmarshal(reply.answer, answer); err != nil {
		return false, tool.Errorf(tool.Internal, "the user's answer cannot be read").WithCause(err)
	}
	return true, nil
}

// hostRequest is what a plugin can ask its host: for a secret, or a question.
type hostRequest struct {
	ticket   []byte
	secret   string
	question string
	form     json.RawMessage

	execution *tool.Execution
}

// hostReply is what it answers.
type hostReply struct {
	err      *tool.Error
	secret   []byte
	answered bool
	answer   json.RawMessage
	mayRun   bool
}

// connection is the plugin's way to the host, while there is one. The zero
// connection has none.
type connection struct {
	mu       sync.Mutex // guards everything below
	requests chan numbered
	gone     chan struct{} // closed when the host goes; nil without a host
	last     uint64
	waiting  map[uint64]chan hostReply
}

// numbered is a request on its way.
type numbered struct {
	id      uint64
	request hostRequest
}

// attach opens the connection. It reports false if there is one already.
func (c *connection) attach(send func(uint64, hostRequest) error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone != nil {
		return false
	}
	c.requests, c.gone, c.waiting = make(chan numbered), make(chan struct{}), map[uint64]chan hostReply{}
	go c.sendAll(send, c.requests, c.gone) // ends with the connection, or with the send that is then under way
	return true
}

// sendAll sends one request after the other: a host that does not read blocks
// it, and nobody who asks.
func (c *connection) sendAll(send func(uint64, hostRequest) error, requests <-chan numbered, gone <-chan struct{}) {
	for {
		select {
		case r := <-requests:
			if err := send(r.id, r.request); err != nil {
				c.deliver(r.id, hostReply{err: errNotConnected().WithCause(err)})
			}
		case <-gone:
			return
		}
	}
}

// detach closes the connection and fails what waits.
func (c *connection) detach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, reply := range c.waiting {
		reply <- hostReply{err: errNotConnected()}
	}
	close(c.gone)
	c.requests, c.gone, c.waiting = nil, nil, nil
}

// deliver hands an answer to the one who asked. Nobody waits for an answer that
// comes too late.
func (c *connection) deliver(id uint64, r hostReply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reply, ok := c.waiting[id]; ok {
		delete(c.waiting, id)
		reply <- r
	}
}

// ask sends a request and waits for its answer.
func (c *connection) ask(ctx context.Context, r hostRequest) (hostReply, error) {
	// It has room for the one answer, so that nobody who answers waits.
	reply := make(chan hostReply, 1)
	c.mu.Lock()
	requests := c.requests
	if c.gone == nil {
		c.mu.Unlock()
		return hostReply{}, errNotConnected()
	}
	if len(c.waiting) >= maxAsked {
		c.mu.Unlock()
		return hostReply{}, tool.Errorf(tool.ResourceExhausted, "the plugin waits for %d answers of the host already", maxAsked)
	}
	c.last++
	id := c.last
	c.waiting[id] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, id)
	}()

	for {
		select {
		case requests <- numbered{id, r}:
			requests = nil // it is sent once
		case answer := <-reply:
			if answer.err != nil {
				return hostReply{}, answer.err
			}
			return answer, nil
		case <-ctx.Done():
			return hostReply{}, toError(ctx, ctx.Err())
		}
	}
}

func errNotConnected() *tool.Error {
	return tool.Errorf(tool.Unavailable, "the host does not answer the plugin's requests").
		WithHint("the tool needs a secret or an answer of the user; ask the administrator whether this host offers them")
}
