package process

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/toolhost/toolhost/host/internal/plugin/egress"
	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxQuestion and maxForm bound a question and the schema of its answer, in
	// bytes.
	maxQuestion = 4 << 10
	maxForm     = 16 << 10
	// maxQuestions bounds the questions of one call.
	maxQuestions = 8
	// maxUnread bounds the replies that a plugin has not read. The sdk never has
	// more than half as many requests open.
	maxUnread = 512
	// ticketSize is the size of a ticket, in bytes.
	ticketSize = 32
)

// errUnread ends the channel of a plugin that sends requests and does not read the
// replies.
var errUnread = errors.New("did not read the answers to its requests")

// errChanging ends the channel of a plugin that changes its tools without waiting for the host.
var errChanging = errors.New("changed its tools again and again without waiting for the host")

// errTools ends the channel of a plugin whose tools cannot be read.
var errTools = errors.New("changed its tools to some that the contract does not allow")

// maxChanging bounds the changes of its tools that a plugin sends before the host has taken one. The
// sdk sends one.
const maxChanging = 16

// ChangedFunc takes the tools that a plugin has from now on, and returns at once. taken is closed when
// the host knows them or later ones. The error is for the plugin.
type ChangedFunc func(tools []tool.Spec) (taken <-chan struct{}, err *tool.Error)

// Serve answers the requests of the plugin until its channel to the host ends, and
// returns the reason. It calls attached when the plugin has opened the channel or
// will not open it, and changed when the plugin changes its tools. The end of the process ends
// the channel, and so does ctx.
func (p *Process) Serve(ctx context.Context, attached func(), changed ChangedFunc) error {
	p.wire.changed = changed
	err := p.wire.connect(ctx, attached)
	for _, fault := range []error{errUnread, errChanging, errTools} {
		if errors.Is(err, fault) {
			p.Blame(fault.Error())
		}
	}
	return p.printable(err)
}

// connect answers the requests of the plugin until the stream ends. It continues to read while
// users are asked and replies are sent, because the end of the stream reveals a crash.
func (w *wire) connect(ctx context.Context, attached func()) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := w.client.Connect(ctx)
	if err == nil {
		_, err = stream.Header()
	}
	attached()
	if err != nil {
		cancel()
		return err
	}
	replies := make(chan *toolpluginv1.HostMessage, maxUnread) // full: the channel ends
	var answering sync.WaitGroup
	defer answering.Wait()
	defer cancel()
	answering.Go(func() { sendReplies(ctx, stream, replies) }) // ends with ctx
	// A call has one question at a time, and maxChanging bounds the changes: so both bound the
	// goroutines.
	return w.answerRequests(ctx, stream, replies, &answering)
}

type connectStream = grpc.BidiStreamingClient[toolpluginv1.HostMessage, toolpluginv1.PluginMessage]

func sendReplies(ctx context.Context, stream connectStream, replies <-chan *toolpluginv1.HostMessage) {
	for {
		select {
		case reply := <-replies:
			if stream.Send(reply) != nil {
				return // the reader gets the reason
			}
		case <-ctx.Done():
			return
		}
	}
}

// answerRequests reads the plugin's requests until the stream ends.
func (w *wire) answerRequests(ctx context.Context, stream connectStream, replies chan<- *toolpluginv1.HostMessage, answering *sync.WaitGroup) error {
	var changing atomic.Int32
	for {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		reply := &toolpluginv1.HostMessage{Id: request.GetId()}
		var refused *tool.Error
		switch {
		case request.GetSecret() != nil:
			var value string
			if value, refused = w.secretFor(ctx, request.GetTicket(), request.GetSecret().GetName()); refused == nil {
				reply.Reply = &toolpluginv1.HostMessage_Secret{Secret: &toolpluginv1.SecretReply{Value: []byte(value)}}
			}
		case request.GetMayRun() != nil:
			if refused = w.mayRun(request.GetTicket(), request.GetMayRun()); refused == nil {
				reply.Reply = &toolpluginv1.HostMessage_MayRun{MayRun: &toolpluginv1.MayRunReply{}}
			}
		case request.GetToolsChanged() != nil:
			tools, err := specsFrom(request.GetToolsChanged().GetTools())
			switch {
			case err != nil:
				return fmt.Errorf("%w: %w", errTools, err)
			case changing.Add(1) > maxChanging:
				return errChanging
			}
			var taken <-chan struct{}
			if taken, refused = w.changed(tools); refused != nil {
				changing.Add(-1)
				break
			}
			answering.Go(func() { // ends when the host has taken the tools, or with ctx
				select {
				case <-taken:
				case <-ctx.Done():
					return
				}
				changing.Add(-1)
				select {
				case replies <- reply:
				case <-ctx.Done():
				}
			})
			continue
		default:
			var ask askFunc
			var done func()
			if ask, done, refused = w.question(request); refused != nil {
				break
			}
			q := tool.Question{
				Text:   request.GetAskUser().GetQuestion(),
				Schema: json.RawMessage(request.GetAskUser().GetSchemaJson()),
			}
			answering.Go(func() { // ends with the call or with ctx
				answer, err := ask(ctx, q)
				done()
				select {
				case replies <- answerReply(reply, answer, err):
				case <-ctx.Done():
				}
			})
			continue
		}
		reply.Error = errorTo(refused)
		select {
		case replies <- reply:
		default:
			return errUnread
		}
	}
}

// SecretFunc returns the value of a secret for a call of a user, or the error that the plugin gets.
type SecretFunc func(ctx context.Context, user, name string) (string, *tool.Error)

// secretFor returns the value of a secret to a call that is running.
func (w *wire) secretFor(ctx context.Context, ticket []byte, name string) (string, *tool.Error) {
	if w.secret == nil {
		return "", NotGranted(name)
	}
	user, refused := w.tickets.userOf(ticket)
	if refused != nil {
		return "", refused
	}
	return w.secret(ctx, user, name)
}

// NotGranted is the error of a secret that a plugin may not request.
func NotGranted(name string) *tool.Error {
	return tool.Errorf(tool.PermissionDenied, "the plugin was not granted a secret %s", tool.VisibleName(name)).
		WithHint("the administrator makes a secret block of this name, and lists it under secrets in the plugin's block")
}

// mayRun decides one execution of a call's command.
func (w *wire) mayRun(ticket []byte, part *toolpluginv1.MayRunRequest) *tool.Error {
	return w.tickets.decide(ticket, tool.Execution{
		Argv: part.GetArgv(), Environment: part.GetEnvironment(), Directory: part.GetDirectory(), File: part.GetFile(), Write: part.GetWrite(),
	})
}

// question checks a request and returns the function that asks the user. The caller
// calls done when that function has returned.
func (w *wire) question(request *toolpluginv1.PluginMessage) (ask askFunc, done func(), refused *tool.Error) {
	question := request.GetAskUser()
	text, form := len(question.GetQuestion()), len(question.GetSchemaJson())
	switch {
	case question == nil: // a request of a later version of the contract
		return nil, nil, tool.Errorf(tool.Unavailable, "this host does not answer such requests of plugins")
	case text > maxQuestion || form > maxForm:
		return nil, nil, tool.Errorf(tool.ResourceExhausted, "the question has %d bytes and its schema %d, more than the %v and %v that are allowed",
			text, form, tool.ByteSize(maxQuestion), tool.ByteSize(maxForm)).
			WithHint("ask a person for less at once")
	}
	return w.tickets.ask(request.GetTicket())
}

func answerReply(reply *toolpluginv1.HostMessage, answer tool.Answer, err error) *toolpluginv1.HostMessage {
	if err != nil {
		reply.Error = errorTo(tool.AsError(err))
		return reply
	}
	said := &toolpluginv1.AskUserReply{Answered: answer.Given}
	if answer.Given {
		said.AnswerJson = answer.Values
	}
	reply.Reply = &toolpluginv1.HostMessage_AskUser{AskUser: said}
	return reply
}

// errorTo converts an error for a plugin, without its cause; nil stays nil.
func errorTo(e *tool.Error) *toolpluginv1.Error {
	if e == nil {
		return nil
	}
	return &toolpluginv1.Error{Code: string(e.Code), Message: e.Message, Retryable: e.Retryable, Hint: e.Hint}
}

// askFunc asks the user of one call; see [tool.Sink].
type askFunc = func(ctx context.Context, q tool.Question) (tool.Answer, error)

// mayRunFunc decides one execution of a call's command; see [tool.Sink].
type mayRunFunc = func(e tool.Execution) *tool.Error

// connectFunc decides about a connection of a call; see [tool.Sink].
type connectFunc = func(ctx context.Context, to tool.Destination, wanted bool) (tool.Permission, *tool.Error)

// tickets hold the authority of the running calls of one process. A request with
// the ticket of a call acts on behalf of that call. The zero value is ready.
type tickets struct {
	mu   sync.Mutex // guards open and its tickets
	open map[[ticketSize]byte]*ticket
}

type ticket struct {
	call, user, session string
	since               time.Time
	ended               <-chan struct{}
	ask                 askFunc     // nil: the user cannot be asked
	mayRun              mayRunFunc  // nil: nothing may be executed
	connect             connectFunc // nil: no person decides about connections
	perDay              tool.ByteSize

	asked int  // number of questions so far
	busy  bool // a question waits for its answer
}

// issue returns a ticket for a call, valid until revoke. ctx is the call's.
func (t *tickets) issue(ctx context.Context, call *tool.Call, sink *tool.Sink) (name []byte, revoke func()) {
	var key [ticketSize]byte
	_, _ = rand.Read(key[:]) // never fails
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[[ticketSize]byte]*ticket)
	}
	one := &ticket{call: call.ID, user: call.Context.User, session: call.Context.Session, since: time.Now(), ended: ctx.Done(), mayRun: sink.MayRun}
	if sink.Ask != nil {
		one.ask = endingWith(ctx, sink.Ask)
	}
	if connect := sink.Connect; connect != nil {
		one.perDay = sink.NetworkPerDay
		one.connect = func(request context.Context, to tool.Destination, wanted bool) (tool.Permission, *tool.Error) {
			request, cancel := either(request, ctx)
			defer cancel()
			return connect(request, to, wanted)
		}
	}
	t.open[key] = one
	return key[:], func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, key)
	}
}

// endingWith returns ask, except that a question ends with the call too.
func endingWith(call context.Context, ask askFunc) askFunc {
	return func(ctx context.Context, q tool.Question) (tool.Answer, error) {
		ctx, cancel := either(ctx, call)
		defer cancel()
		return ask(ctx, q)
	}
}

// either returns a context that ends with the first of two.
func either(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// cause returns the call that the process makes a connection for: that of the ticket, or without
// one the only user's and session's that run, of these the latest. owner is whom the process
// belongs to.
func (t *tickets) cause(name []byte, owner Owner) egress.Cause {
	t.mu.Lock()
	defer t.mu.Unlock()
	nobody := egress.Cause{User: owner.User, Session: owner.Session}
	if len(name) > 0 {
		one, err := t.find(name)
		if err != nil {
			nobody.None = "the call that it belongs to has ended, so no person can be asked"
			return nobody
		}
		return one.cause()
	}
	var found *ticket
	for _, one := range t.open {
		switch {
		case found == nil || one.user == found.user && one.session == found.session && one.since.After(found.since):
			found = one
		case one.user != found.user || one.session != found.session:
			nobody.None = "calls of several users or sessions run in the process, and which of them it belongs to is not known, " +
				"so no person can be asked; isolation_scope gives each a process"
			return nobody
		}
	}
	if found == nil {
		nobody.None = "no call runs that it could belong to, so no person can be asked"
		return nobody
	}
	return found.cause()
}

func (t *ticket) cause() egress.Cause {
	c := egress.Cause{Call: t.call, User: t.user, Session: t.session, PerDay: t.perDay, Connect: t.connect, Ended: t.ended}
	if t.connect == nil {
		c.None = "no person can be asked about connections of a preview"
	}
	return c
}

// ask returns the function that asks the user of the ticket's call. The caller
// calls done when it has returned. ask refuses a ticket that this process does not
// hold, a second question at the same time, and more questions than a call may
// have.
func (t *tickets) ask(name []byte) (ask askFunc, done func(), err *tool.Error) {
	if len(name) == 0 {
		return nil, nil, tool.Errorf(tool.Unavailable, "the user cannot be asked on behalf of this call: it has no ticket")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	one, err := t.find(name)
	switch {
	case err != nil:
		return nil, nil, err
	case one.ask == nil:
		return nil, nil, tool.Errorf(tool.Unavailable, "the user cannot be asked on behalf of this call")
	case one.busy:
		return nil, nil, tool.Errorf(tool.Conflict, "the call already has a question that was not answered yet").
			WithHint("ask one question at a time")
	case one.asked == maxQuestions:
		return nil, nil, tool.Errorf(tool.ResourceExhausted, "the call has asked its user %d times, the most allowed", maxQuestions).
			WithHint("ask for several values in one question")
	}
	one.asked, one.busy = one.asked+1, true
	return one.ask, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		one.busy = false
	}, nil
}

// decide decides an execution on behalf of the ticket's call.
func (t *tickets) decide(name []byte, e tool.Execution) *tool.Error {
	t.mu.Lock()
	one, err := t.find(name)
	t.mu.Unlock()
	switch {
	case err != nil:
		return err
	case one.mayRun == nil:
		return tool.Errorf(tool.PermissionDenied, "the call executes no command by its tree")
	}
	return one.mayRun(e)
}

// userOf returns the user of a call. It refuses a ticket that belongs to no running call of this process.
func (t *tickets) userOf(name []byte) (string, *tool.Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, err := t.find(name)
	if err != nil {
		return "", err
	}
	return one.user, nil
}

// find returns the ticket with a name. The caller holds t.mu.
func (t *tickets) find(name []byte) (*ticket, *tool.Error) {
	if len(name) == ticketSize {
		if one := t.open[[ticketSize]byte(name)]; one != nil {
			return one, nil
		}
	}
	return nil, tool.Errorf(tool.PermissionDenied, "the ticket belongs to no running call of this process").
		WithHint("ask while the call runs, with the ticket that came with it")
}
