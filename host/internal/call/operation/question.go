package operation

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxOpenQuestions bounds the questions of tools that wait for one user.
	maxOpenQuestions = 20
	// maxWrongAnswers is the number of invalid answers after which a question ends.
	maxWrongAnswers = 3
)

// Question is a question of the operation's tool to its user. The answer goes to
// the tool and decides nothing: it is not an approval.
type Question struct {
	// ID is the question's id, "qu_" and a UUIDv7. A question that is asked again because its
	// answer was invalid gets a new id. [Asker.Open] sets it.
	ID string
	// Plugin and Tool name the asker.
	Plugin, Tool string
	// Text is the tool's text, unchanged.
	Text string
	// Schema describes the form; see [schema.Form]. [Asker.Open] sets it.
	Schema json.RawMessage
	// Mistake is why the previous answer was invalid; "" if there was none.
	Mistake string
	// Expires is when the question ends unanswered.
	Expires time.Time
}

// Attend counts a holder that shows the tool's questions to the user until it calls Leave. A
// caller that set [Call.Attended] is already counted.
func (o *Operation) Attend() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.joined != nil {
		o.joined.Attend()
		return
	}
	o.attendants, o.expected = o.attendants+1, false
}

// Leave ends the attendance of one holder. When no holder attends and none is expected, an open
// question ends without an answer.
func (o *Operation) Leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.joined != nil {
		o.joined.Leave()
		return
	}
	o.attendants--
	if !o.attended() {
		o.endQuestion(questionEnd{err: errUnattended})
	}
}

// Expect marks that a client was told to return with an answer: the tool's
// questions wait until a holder attends again.
func (o *Operation) Expect() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.joined != nil {
		o.joined.Expect()
		return
	}
	o.expected = true
}

// takeOver adds the attendants of an operation that joins o. The caller holds the joining
// operation's mutex, which is safe because an operation is always older than those that join
// it.
func (o *Operation) takeOver(attendants int, expected bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.joined != nil {
		o.joined.takeOver(attendants, expected)
		return
	}
	o.attendants, o.expected = o.attendants+attendants, o.expected || expected
}

// attended reports whether a question can be answered. o.mu is held.
func (o *Operation) attended() bool { return o.attendants > 0 || o.expected }

// Answer answers the open question and reports whether it was still waiting: a question takes
// one answer. If the answer is invalid, Answer asks the question again under a new id, up to a
// limit.
func (o *Operation) Answer(id string, answer tool.Answer) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.joined != nil {
		return o.joined.Answer(id, answer)
	}
	q := o.question
	if q == nil || q.question.ID != id {
		return false
	}
	if answer.Given {
		values, err := q.form.Check(answer.Values)
		if err != nil {
			o.askAgain(q, err)
			return true
		}
		answer.Values = values
	}
	o.endQuestion(questionEnd{answer: answer})
	return true
}

// AskAgain asks the open question again, as [Operation.Answer] does after an invalid answer;
// mistake is the reason. It reports whether the question was still waiting.
func (o *Operation) AskAgain(id, mistake string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.joined != nil {
		return o.joined.AskAgain(id, mistake)
	}
	if o.question == nil || o.question.question.ID != id {
		return false
	}
	o.askAgain(o.question, tool.Errorf(tool.InvalidArgument, "%s", mistake))
	return true
}

// askAgain repeats a question whose answer was invalid. o.mu is held.
func (o *Operation) askAgain(q *OpenQuestion, mistake *tool.Error) {
	if q.wrong++; q.wrong == maxWrongAnswers {
		o.endQuestion(questionEnd{err: tool.Errorf(tool.Unavailable, "the user gave %d answers in a row that do not fit the tool's question", q.wrong).
			WithCause(mistake)})
		return
	}
	q.question.ID, q.question.Mistake = newQuestionID(), mistake.Message
	o.change(AwaitingInput)
}

// HasAsked reports whether the tool has asked its user.
func (o *Operation) HasAsked() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.hasAsked
}

// Asker lets a tool ask its user during one attempt of a call.
type Asker struct{ operation *Operation }

// NewAsker returns an asker for a new attempt of the call; earlier attempts can no longer ask.
// The caller must Close it when the attempt has ended.
func (o *Operation) NewAsker() *Asker {
	a := &Asker{o}
	o.setAsker(a)
	return a
}

// Close ends the attempt and withdraws its question. The attempt cannot ask again.
func (a *Asker) Close() { a.operation.setAsker(nil) }

// setAsker sets which attempt may ask from now on, and withdraws the question of an
// earlier one.
func (o *Operation) setAsker(a *Asker) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asker = a
	o.endQuestion(questionEnd{err: ErrCanceled})
}

// Open opens a question to the user. It fails if no holder attends, and if too
// many questions wait for the user. The caller must Close the question.
func (a *Asker) Open(question Question, form *schema.Form) (*OpenQuestion, error) {
	o, r := a.operation, a.operation.registry
	question.ID, question.Schema = newQuestionID(), form.Public()
	q := &OpenQuestion{operation: o, question: question, form: form, end: make(chan questionEnd, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := 0
	for _, other := range r.byID {
		if other.call.Caller.User == o.call.Caller.User && other.hasOpenQuestion() {
			waiting++
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.asker != a || o.question != nil:
		return nil, ErrCanceled // the attempt that asks has ended
	case !o.attended():
		return nil, errUnattended
	case waiting >= maxOpenQuestions:
		return nil, tool.Errorf(tool.ResourceExhausted, "%d questions of tools wait for the user already", waiting)
	}
	o.question, o.hasAsked = q, true
	o.change(AwaitingInput)
	return q, nil
}

// OpenQuestion is a question that waits for its answer.
type OpenQuestion struct {
	operation *Operation
	question  Question // guarded by Operation.mu
	form      *schema.Form
	wrong     int              // invalid answers; guarded by Operation.mu
	end       chan questionEnd // has room for the only value
}

// questionEnd is how a question ended.
type questionEnd struct {
	answer tool.Answer
	err    *tool.Error
}

// Wait returns the answer. It fails when the question ends unanswered, timeout passes, or ctx
// ends.
func (q *OpenQuestion) Wait(ctx context.Context, timeout time.Duration) (tool.Answer, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return tool.Answer{}, Cause(ctx)
	case <-timer.C:
		return tool.Answer{}, tool.Errorf(tool.Unavailable, "no one answered the tool's question within %s", timeout)
	case end := <-q.end:
		if end.err != nil {
			return tool.Answer{}, end.err
		}
		return end.answer, nil
	}
}

// Close withdraws the question if it is still open.
func (q *OpenQuestion) Close() {
	o := q.operation
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.question == q {
		o.endQuestion(questionEnd{err: ErrCanceled})
	}
}

// endQuestion ends the open question, if there is one. o.mu is held.
func (o *Operation) endQuestion(end questionEnd) {
	if o.question == nil {
		return
	}
	o.question.end <- end
	o.question = nil
	o.change(Running)
}

func (o *Operation) hasOpenQuestion() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.question != nil
}

// newQuestionID returns an id that sorts by time.
func newQuestionID() string { return "qu_" + uuid.Must(uuid.NewV7()).String() }
