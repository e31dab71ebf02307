package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Flight is a call under way. It outlives the request that began it, so that a
// caller can come back for the result of a call that waits for a person.
//
// Whoever holds a flight must Release it. One that nobody holds is canceled
// after a while, unless it waits for a person; its result is kept as long.
type Flight struct {
	p      *Pipeline
	call   *call
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the flight has ended
	sink   sink

	mu       sync.Mutex    // guards what follows; taken after flights.mu
	holders  int           // who may still Wait
	begun    bool          // the plugin may have the call: a host that stops lets it finish
	state    FlightState   // what it does
	key      flightKey     // which calls are the same one made again, once that is known
	lease    int           // counts the holds, so that an old timer does not end a new one
	approval string        // the record that the flight waits for or has waited for
	asked    time.Time     // since when it waits for a person
	changed  chan struct{} // closed and replaced when the state changes
	owed     bool          // its caller was told to make the same call again for the result
	took     bool          // a holder has the outcome
	kept     bool          // the outcome can be collected again although a holder has it
	outcome  Outcome       // when done is closed
	follows  *Flight       // when done is closed: the flight that carries the call instead, never itself

	attendants int    // holders who take the tool's questions to the user
	expected   bool   // one of them comes back
	asker      *asker // the attempt that may ask; nil: none
	input      *input // what the tool asks; nil: nothing
	consulted  bool   // the tool has asked
}

// FlightState is what a flight is doing.
type FlightState string

// The states of a flight.
const (
	Running          FlightState = "running"
	AwaitingApproval FlightState = "awaiting_approval"
	AwaitingInput    FlightState = "awaiting_input" // the tool asks its user
	Done             FlightState = "done"
)

// Forever is the patience of a caller that waits for a person as long as it
// takes.
const Forever time.Duration = -1

// FlightInfo is what a list shows of a flight.
type FlightInfo struct {
	ID       string      `json:"tool_call_id"`
	Tool     string      `json:"tool"`
	User     string      `json:"user"`
	Client   string      `json:"client,omitempty"`
	Session  string      `json:"session,omitempty"`
	State    FlightState `json:"state"`
	Approval string      `json:"approval_id,omitempty"`
	Started  time.Time   `json:"started"`
}

// ID returns the id of the call.
func (f *Flight) ID() string { return f.call.id }

// Info returns what a list shows of the flight.
func (f *Flight) Info() FlightInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	return FlightInfo{
		ID: f.call.id, Tool: f.call.Tool, User: f.call.Caller.User, Client: f.call.Caller.Client,
		Session: f.call.Caller.Session, State: f.state, Approval: f.approval, Started: f.call.started,
	}
}

// Wait returns the outcome of the flight. If ctx ends before, or the flight has
// waited for a person longer than patience, it returns an outcome that is
// Pending instead, and the flight goes on.
func (f *Flight) Wait(ctx context.Context, patience time.Duration) Outcome {
	return f.wait(ctx, patience, false)
}

func (f *Flight) wait(ctx context.Context, patience time.Duration, attending bool) Outcome {
	select {
	case <-f.done: // without a look at the state, which most flights never change
	default:
		if !f.waitDone(ctx, patience, attending) {
			return f.pending(attending)
		}
	}
	if f.follows != nil {
		outcome := f.follows.wait(ctx, patience, attending)
		if !outcome.Pending {
			f.follows.collected()
		}
		return outcome
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.took = true
	return f.outcome
}

// waitDone reports whether the flight ended before ctx or patience did, or
// before there is a question for whoever attends.
func (f *Flight) waitDone(ctx context.Context, patience time.Duration, attending bool) bool {
	for {
		f.mu.Lock()
		changed, awaiting, asked := f.changed, f.state == AwaitingApproval, f.asked
		asks := f.input != nil
		f.mu.Unlock()
		if attending && asks {
			return false
		}

		var impatient <-chan time.Time
		if awaiting && patience >= 0 {
			timer := time.NewTimer(time.Until(asked.Add(patience)))
			defer timer.Stop()
			impatient = timer.C
		}
		select {
		case <-f.done:
			return true
		case <-changed:
		case <-impatient:
			return f.isDone() // both may have come
		case <-ctx.Done():
			return f.isDone()
		}
	}
}

// pending is the outcome of a flight that goes on without its caller.
func (f *Flight) pending(attending bool) Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	waits := tool.Errorf(tool.PendingApproval, "the call has not ended yet")
	if f.state == AwaitingApproval {
		waits = tool.Errorf(tool.PendingApproval, "the call waits for a person to approve it (%s)", f.approval)
	}
	outcome := Outcome{
		ID: f.call.id, Tool: f.call.Tool, Result: tool.ErrorResult(waits),
		Duration: time.Since(f.call.started), Approval: f.approval, Pending: true,
	}
	if attending && f.input != nil {
		question := f.input.question
		outcome.Question = &question
	}
	return outcome
}

// Owe says that the caller was told to make the same call again for the result:
// until somebody has it, such a call gets it.
func (f *Flight) Owe() {
	if f.isDone() && f.follows != nil {
		f.follows.Owe()
		return
	}
	f.p.flights.owe(f)
}

// collected says that the same call made again has the result.
func (f *Flight) collected() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owed = false
}

func (f *Flight) isOwed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.owed
}

// Keep says that the caller comes back by the flight's id, perhaps more than
// once: the outcome is kept as if nobody had collected it. The same call made
// again is a call of its own.
func (f *Flight) Keep() {
	if f.isDone() && f.follows != nil {
		f.follows.Keep()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owed, f.kept = false, true
}

// Report makes a sink get what the tool reports from now on, in place of the
// one before.
func (f *Flight) Report(to tool.Sink) {
	if f.isDone() && f.follows != nil {
		f.follows.Report(to)
		return
	}
	f.sink.set(to)
}

// Watch passes what the call reports of its progress to one more function,
// which must not block, until stop.
func (f *Flight) Watch(progress func(tool.Progress)) (stop func()) {
	return f.sink.watch(progress)
}

// Resumed returns when the flight does not wait for the decision about an
// approval or the answer to a question, which may be at once, or when ctx ends.
func (f *Flight) Resumed(ctx context.Context, id string) {
	for {
		f.mu.Lock()
		changed := f.changed
		waits := f.state == AwaitingApproval && f.approval == id || f.input != nil && f.input.question.ID == id
		f.mu.Unlock()
		if !waits {
			break
		}
		select {
		case <-changed:
		case <-f.done:
		case <-ctx.Done():
			return
		}
	}
	if f.isDone() && f.follows != nil {
		f.follows.Resumed(ctx, id)
	}
}

// Cancel ends the flight, whoever waits for it. The tool is told to stop.
func (f *Flight) Cancel() {
	if f.isDone() && f.follows != nil {
		f.follows.Cancel()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop(errCanceled)
}

// GiveUp ends the flight unless others hold it too: the request that held it
// does not wait any more.
func (f *Flight) GiveUp() { f.giveUp(errCanceled) }

// giveUp reports whether the flight ends.
func (f *Flight) giveUp(cause error) bool {
	if f.isDone() && f.follows != nil {
		return f.follows.giveUp(cause)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	shared := f.holders > 1
	if !shared {
		f.stop(cause)
	}
	return !shared
}

// stop ends the flight for a reason. What its tool asks ends with it, and not
// later because whoever attended has left, which would be another reason. f.mu
// is held.
func (f *Flight) stop(cause error) {
	f.cancel(cause)
	f.asker = nil
	f.endInput(inputEnd{err: errCanceled})
}

// Release gives the flight up. It must be called once by whoever got it from
// [Pipeline.Start] or [Pipeline.Flight].
func (f *Flight) Release() {
	f.mu.Lock()
	f.holders--
	last := f.holders == 0
	if last {
		f.sink.set(tool.Sink{})
	}
	collected, follows := last && f.took && !f.owed && !f.kept, f.follows
	f.mu.Unlock()
	switch {
	case !last:
	case follows != nil:
		follows.Release()
	case collected:
		f.p.flights.remove(f)
	default:
		f.p.flights.abandon(f)
	}
}

// identify says which calls are this one made again.
func (f *Flight) identify(key flightKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.key = key
}

// begin says that the plugin gets the call from now on, unless the flight was stopped
// before. The host's own tools wait and read: a host that stops need not let them
// finish.
func (f *Flight) begin(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return causeOf(ctx)
	}
	f.begun = !f.call.entry.OfHost()
	return nil
}

// carries reports whether the flight's call is the same as c. The client does
// not matter: it is the key that says that they are the same.
func (f *Flight) carries(c *call) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.key.tool == c.entry.Spec.Name && f.key.arguments == c.hash
}

// asks says which record the flight's call was asked about in.
func (f *Flight) asks(approval string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.approval = approval
}

// await says that the flight waits for a person from now on.
func (f *Flight) await(approval string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.approval, f.asked = approval, time.Now()
	f.change(AwaitingApproval)
}

// resume says that it does not wait any more.
func (f *Flight) resume() {
	f.mu.Lock()
	f.change(Running)
	abandoned := f.holders == 0
	f.mu.Unlock()
	if abandoned {
		f.p.flights.abandon(f)
	}
}

// change sets the state and wakes who waits. f.mu is held.
func (f *Flight) change(state FlightState) {
	f.state = state
	close(f.changed)
	f.changed = make(chan struct{})
}

// end hands the outcome to everybody who waits. A flight that follows another
// one holds that one for its own holders.
func (f *Flight) end(outcome Outcome, follows *Flight) {
	if follows != nil {
		f.p.flights.redirect(f, follows) // nobody new holds it from now on
	}
	f.mu.Lock()
	outcome.Approval = f.approval
	f.outcome, f.follows, f.state = outcome, follows, Done
	if follows != nil {
		follows.takeOver(f.attendants, f.expected)
	}
	abandoned := f.holders == 0
	close(f.done) // with the state: who sees one sees the other
	f.mu.Unlock()
	f.cancel(nil) // gives the context's resources back
	switch {
	case !abandoned:
	case follows != nil:
		follows.Release()
	default:
		f.p.flights.abandon(f)
	}
}

func (f *Flight) isDone() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}
