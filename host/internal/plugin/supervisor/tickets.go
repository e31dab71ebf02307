package supervisor

import (
	"context"
	"crypto/rand"
	"sync"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// ticketSize is that of a ticket, in bytes.
	ticketSize = 32
	// maxQuestions bounds how often one call may ask its user.
	maxQuestions = 8
)

// asking asks the user of one call; see [tool.Sink].
type asking func(ctx context.Context, q tool.Question) (tool.Answer, error)

// judging judges one execution of a call's command; see [tool.Sink].
type judging func(e tool.Execution) *tool.Error

// tickets are the authority of the calls that one process runs towards the
// host: whoever shows one asks on behalf of that call. The zero value is ready.
type tickets struct {
	mu   sync.Mutex                   // guards open and what is in it
	open map[[ticketSize]byte]*ticket // as long as their calls
}

type ticket struct {
	ask    asking  // nil: nobody can be asked
	mayRun judging // nil: nothing may be executed

	asked int  // how many questions there were
	busy  bool // one waits for its answer
}

// issue makes a ticket for a call, which counts until revoke. ctx is the call's.
// A call that can ask for nothing has none.
func (t *tickets) issue(ctx context.Context, ask asking, mayRun judging, secrets bool) (name []byte, revoke func()) {
	if ask == nil && mayRun == nil && !secrets {
		return nil, func() {}
	}
	var key [ticketSize]byte
	_, _ = rand.Read(key[:]) // never fails
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[[ticketSize]byte]*ticket)
	}
	one := &ticket{mayRun: mayRun}
	if ask != nil {
		one.ask = whileBoth(ctx, ask)
	}
	t.open[key] = one
	return key[:], func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, key)
	}
}

// whileBoth ends a question with the call, too.
func whileBoth(call context.Context, ask asking) asking {
	return func(ctx context.Context, q tool.Question) (tool.Answer, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(call, func() { cancel(context.Cause(call)) })()
		return ask(ctx, q)
	}
}

// take returns what asks the user of the call that a ticket belongs to, and has
// to be told when that is done. A ticket that was made up, that is another
// process's or that of a call which has ended is refused, and so is a question
// beyond those that a call may have.
func (t *tickets) take(name []byte) (ask asking, done func(), err *tool.Error) {
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
		return nil, nil, tool.Errorf(tool.Conflict, "the call has a question already that was not answered yet").
			WithHint("ask one question at a time")
	case one.asked == maxQuestions:
		return nil, nil, tool.Errorf(tool.ResourceExhausted, "the call has asked its user %d times, which is all that it may", maxQuestions).
			WithHint("ask for several values in one question")
	}
	one.asked, one.busy = one.asked+1, true
	return one.ask, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		one.busy = false
	}, nil
}

// judge judges an execution on behalf of the call that a ticket belongs to.
func (t *tickets) judge(name []byte, e tool.Execution) *tool.Error {
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

// check refuses a ticket that is not that of a call which this process runs.
func (t *tickets) check(name []byte) *tool.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.find(name)
	return err
}

// find returns the ticket of a name; t.mu is held.
func (t *tickets) find(name []byte) (*ticket, *tool.Error) {
	if len(name) == ticketSize {
		if one := t.open[[ticketSize]byte(name)]; one != nil {
			return one, nil
		}
	}
	return nil, tool.Errorf(tool.PermissionDenied, "the ticket is that of no call which this process runs").
		WithHint("ask while the call runs, with the ticket that came with it")
}
