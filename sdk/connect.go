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

// maxAsked is the maximum number of requests that wait for an answer of the host.
const maxAsked = 256

// Secret returns the value of a secret that the administrator granted to the
// plugin by name. It asks the host on behalf of this call
// and blocks until the host answers or ctx ends. Do not keep the value: the
// administrator can revoke a grant. Errors are of type [*tool.Error]; return them
// unchanged.
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

// AskUser asks the user a question and decodes the answer into answer, a pointer
// to a struct whose fields are of basic types and have the tags of [AddTool]. An
// optional field has omitempty or a default. AskUser reports false if the user
// declined to answer. It blocks until the user answers or ctx ends. This time
// does not count toward the time-out of the call.
//
// The user sees that the tool asks. The answer does not approve anything. A call
// asks one question at a time, and a few in all. Errors are of type
// [*tool.Error], except for a wrong type of answer or an empty question; return
// them unchanged. [tool.Unavailable] means that the client cannot ask its user,
// or that the user did not answer in time; continue without the answer if
// possible.
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
	given, err := c.AskForm(ctx, tool.Question{Text: question, Schema: form.schema})
	if err != nil || !given.Given {
		return false, err
	}
	if missing := form.defaults.missing(given.Values); missing != nil {
		if err := json.Unmarshal(missing, answer); err != nil {
			return false, fmt.Errorf("ask the user: set the defaults: %w", err)
		}
	}
	if err := json.Unmarshal(given.Values, answer); err != nil {
		return false, tool.Errorf(tool.Internal, "the user's answer cannot be read").WithCause(err)
	}
	return true, nil
}

// AskForm is [Call.AskUser] for a question whose form is not known when the plugin is compiled,
// such as one of another server. The host refuses a form with more than values of simple types.
func (c *Call) AskForm(ctx context.Context, q tool.Question) (tool.Answer, error) {
	if strings.TrimSpace(q.Text) == "" {
		return tool.Answer{}, errors.New("ask the user: the question is empty")
	}
	if c.events == nil {
		return tool.Answer{}, tool.Errorf(tool.PermissionDenied, "a preview cannot ask the user")
	}
	reply, err := c.host.ask(ctx, hostRequest{ticket: c.data.Context.Ticket, question: q.Text, form: q.Schema})
	if err != nil {
		return tool.Answer{}, err
	}
	return tool.Answer{Given: reply.answered, Values: reply.answer}, nil
}

// hostRequest is a request to the host: for a secret, for an answer of the user,
// whether a part of a command may run, or to take other tools.
type hostRequest struct {
	ticket   []byte
	secret   string
	question string
	form     json.RawMessage

	execution *tool.Execution

	changed bool // the plugin has other tools
	tools   []*entry
}

// hostReply is the answer of the host.
type hostReply struct {
	err      *tool.Error
	secret   []byte
	answered bool
	answer   json.RawMessage
	mayRun   bool
}

// connection sends requests to the host. The zero connection has no host.
type connection struct {
	mu       sync.Mutex // guards everything below
	requests chan numbered
	gone     chan struct{} // closed when the host goes; nil without a host
	last     uint64
	waiting  map[uint64]chan hostReply
}

// numbered is a request in progress.
type numbered struct {
	id      uint64
	request hostRequest
}

// attach opens the connection. It reports false if it is open already.
func (c *connection) attach(send func(uint64, hostRequest) error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone != nil {
		return false
	}
	c.requests, c.gone, c.waiting = make(chan numbered), make(chan struct{}), map[uint64]chan hostReply{}
	go c.sendAll(send, c.requests, c.gone) // ends with the connection, after the current send
	return true
}

// sendAll sends one request after the other. A host that does not read blocks
// sendAll, not the callers of ask.
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

// detach closes the connection and fails the requests that wait.
func (c *connection) detach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, reply := range c.waiting {
		reply <- hostReply{err: errNotConnected()}
	}
	close(c.gone)
	c.requests, c.gone, c.waiting = nil, nil, nil
}

// deliver passes an answer to the caller of ask. An answer that arrives too late
// is dropped.
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
	// It has room for the one answer, so that deliver does not block.
	reply := make(chan hostReply, 1)
	c.mu.Lock()
	requests := c.requests
	if c.gone == nil {
		c.mu.Unlock()
		return hostReply{}, errNotConnected()
	}
	if len(c.waiting) >= maxAsked {
		c.mu.Unlock()
		return hostReply{}, tool.Errorf(tool.ResourceExhausted, "the plugin already waits for %d answers of the host", maxAsked)
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
			return hostReply{}, toError(ctx, "", ctx.Err())
		}
	}
}

func errNotConnected() *tool.Error {
	return tool.Errorf(tool.Unavailable, "the host does not answer the plugin's requests").
		WithHint("the tool needs a secret or an answer of the user; ask the administrator whether this host offers them")
}
