package pipeline

import (
	"context"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Attend says that a holder of the flight takes the tool's questions to the
// user, until it calls Leave. That of [Request.Attended] has done so.
func (f *Flight) Attend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows != nil {
		f.follows.Attend()
		return
	}
	f.attendants, f.expected = f.attendants+1, false
}

// Leave says that a holder that attended does not any more. When nobody does
// and nobody is expected, a question that waits has no answer.
func (f *Flight) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows != nil {
		f.follows.Leave()
		return
	}
	f.attendants--
	if !f.attended() {
		f.endInput(inputEnd{err: errUnattended})
	}
}

// Expect says that a client was told to come back with an answer: until somebody
// attends again, the tool's questions wait for it.
func (f *Flight) Expect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows != nil {
		f.follows.Expect()
		return
	}
	f.expected = true
}

// takeOver counts those in who attended a flight that follows this one. The
// mutex of that one is held: a flight is always older than those that follow it.
func (f *Flight) takeOver(attendants int, expected bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows != nil {
		f.follows.takeOver(attendants, expected)
		return
	}
	f.attendants, f.expected = f.attendants+attendants, f.expected || expected
}

// attended reports whether a question may find an answer. f.mu is held.
func (f *Flight) attended() bool { return f.attendants > 0 || f.expected }

// WaitAttending is [Flight.Wait] for a holder that attends: when the tool asks,
// it returns an outcome that is Pending and has the Question.
func (f *Flight) WaitAttending(ctx context.Context, patience time.Duration) Outcome {
	return f.wait(ctx, patience, true)
}

// Answer gives the answer to a question that the tool asks now, and reports
// whether that one waited for it: each is answered once. An answer that does not
// fit has the question asked again, under another id, some times at most.
func (f *Flight) Answer(id string, answer tool.Answer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows != nil {
		return f.follows.Answer(id, answer)
	}
	in := f.input
	if in == nil || in.question.ID != id {
		return false
	}
	if answer.Given {
		values, err := in.form.Check(answer.Values)
		if err != nil {
			f.askAgain(in, err)
			return true
		}
		answer.Values = values
	}
	f.endInput(inputEnd{answer: answer})
	return true
}

// AskAgain has a question asked again, as [Flight.Answer] does after an answer
// that does not fit: mistake says why there is none. It reports whether the
// question waited for an answer.
func (f *Flight) AskAgain(id, mistake string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows != nil {
		return f.follows.AskAgain(id, mistake)
	}
	if f.input == nil || f.input.question.ID != id {
		return false
	}
	f.askAgain(f.input, tool.Errorf(tool.InvalidArgument, "%s", mistake))
	return true
}

// askAgain asks a question again whose answer did not fit. f.mu is held.
func (f *Flight) askAgain(in *input, mistake *tool.Error) {
	if in.wrong++; in.wrong == maxWrongAnswers {
		f.endInput(inputEnd{err: tool.Errorf(tool.Unavailable, "the user gave %d answers in a row that do not fit the tool's question", in.wrong).
			WithCause(mistake)})
		return
	}
	in.question.ID, in.question.Mistake = newQuestionID(), mistake.Message
	f.change(AwaitingInput)
}
