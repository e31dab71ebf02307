package pipeline

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxOpenQuestions bounds the questions of tools that wait for one user.
	maxOpenQuestions = 20
	// maxWrongAnswers is how many answers that do not fit a question may have.
	maxWrongAnswers = 3
)

// Question is what the tool of a flight asks its user. Its answer goes to the
// tool and decides nothing: it is no approval.
type Question struct {
	// ID is the question's own, "qu_" and a UUIDv7. One that is asked again, since
	// the answer did not fit, has another.
	ID string
	// Plugin and Tool say who asks.
	Plugin, Tool string
	// Text is the tool's own, as it came.
	Text string
	// Schema is that of a form; see [schema.Form].
	Schema json.RawMessage
	// Mistake says why the answer before did not fit; "" if there was none.
	Mistake string
	// Expires is until when it can be answered.
	Expires time.Time
}

// input is a question of a tool that waits for its answer.
type input struct {
	question Question // guarded by the flight's mu
	form     *schema.Form
	wrong    int           // answers that did not fit; guarded by the flight's mu
	end      chan inputEnd // has room for the one that there is
}

// inputEnd is how a question ended.
type inputEnd struct {
	answer tool.Answer
	err    *tool.Error
}

// errUnattended is what a tool hears that asks where nobody can answer.
var errUnattended = tool.Errorf(tool.Unavailable, "the user cannot be asked: the client that made the call shows no questions of tools").
	WithHint("give what the tool wants to know in the arguments, if it takes it there, or make the call from an MCP client that supports elicitation")

// asker lets the tool ask its user, during one attempt of a call.
type asker struct {
	p     *Pipeline
	c     *call
	clock *clock
}

// ask asks the user and waits for the answer. The clock of the attempt stands
// still meanwhile; what bounds the wait is the time for an answer.
func (a *asker) ask(ctx context.Context, q tool.Question) (tool.Answer, error) {
	if strings.TrimSpace(q.Text) == "" {
		return tool.Answer{}, tool.Errorf(tool.InvalidArgument, "the tool's question is empty")
	}
	form, err := schema.CompileForm(q.Schema)
	if err != nil {
		return tool.Answer{}, tool.Errorf(tool.InvalidArgument, "the schema of the tool's question is refused: %v", err).
			WithHint("this is a mistake in the plugin: tell its author")
	}
	defer a.clock.stop()()
	in := &input{form: form, end: make(chan inputEnd, 1), question: Question{
		ID: newQuestionID(), Plugin: a.c.entry.Plugin, Tool: a.c.entry.Spec.Name, Text: q.Text, Schema: form.Public(),
		Expires: time.Now().Add(a.p.opts.AnswerTimeout),
	}}
	if err := a.p.flights.open(a, in); err != nil {
		return tool.Answer{}, err
	}
	defer a.c.flight.withdraw(in)
	a.p.publishState(a.c, event.AwaitingInput)

	timer := time.NewTimer(a.p.opts.AnswerTimeout)
	defer timer.Stop()
	select {
	case <-ctx.Done(): // the call has ended, and says so itself
		return tool.Answer{}, causeOf(ctx)
	case <-timer.C:
		err := tool.Errorf(tool.Unavailable, "nobody has answered the tool's question within %s", a.p.opts.AnswerTimeout)
		a.p.publishState(a.c, event.ToolExecution)
		return tool.Answer{}, err
	case end := <-in.end:
		a.p.publishState(a.c, event.ToolExecution)
		if end.err != nil {
			return tool.Answer{}, end.err
		}
		return end.answer, nil
	}
}

// newQuestionID returns an id that sorts by time.
func newQuestionID() string { return "qu_" + uuid.Must(uuid.NewV7()).String() }

// open makes a question that of its flight.
func (s *flights) open(a *asker, in *input) error {
	f := a.c.flight
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := 0
	for _, other := range s.byID {
		if other.call.Caller.User == f.call.Caller.User && other.isAsked() {
			waiting++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.asker != a || f.input != nil:
		return errCanceled // the attempt has ended that asks
	case !f.attended():
		return errUnattended
	case waiting >= maxOpenQuestions:
		return tool.Errorf(tool.ResourceExhausted, "%d questions of tools wait for the user already", waiting)
	}
	f.input, f.consulted = in, true
	f.change(AwaitingInput)
	return nil
}

// letAsk says which attempt may ask from now on; nil is none. A question of
// another one is taken back.
func (f *Flight) letAsk(a *asker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asker = a
	f.endInput(inputEnd{err: errCanceled})
}

// withdraw takes a question back that has ended.
func (f *Flight) withdraw(in *input) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.input == in {
		f.endInput(inputEnd{err: errCanceled})
	}
}

// endInput ends the question that waits, if there is one. f.mu is held.
func (f *Flight) endInput(end inputEnd) {
	if f.input == nil {
		return
	}
	f.input.end <- end
	f.input = nil
	f.change(Running)
}

func (f *Flight) isAsked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.input != nil
}

// hasAsked reports whether the tool has asked its user.
func (f *Flight) hasAsked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.consulted
}
