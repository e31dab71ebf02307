// Package operation keeps the calls in progress. An [Operation] is the handle of one call. It
// outlives the request that started it, so a caller can collect the result later. A [Registry]
// holds all operations of a host.
//
// The package knows nothing about the steps of a call: [Registry.Start] gets a
// function that executes it.
package operation

import (
	"context"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Operation is a call in progress, or one whose result has not been collected. Its
// methods may be called from any goroutine.
//
// Each holder of an operation must Release it. An operation without holders continues. If it
// waits for a person, it lasts as long as its approval; if it changes something, it runs to
// its end; any other lasts as long as the [Registry] keeps operations. The registry keeps the
// result for the same time.
//
// An operation that turns out to be the same call as an earlier one joins that one: its
// methods then act on the earlier operation.
type Operation struct {
	registry *Registry
	call     Call
	done     chan struct{} // closed when the operation has ended
	sink     sink

	mu       sync.Mutex // guards what follows; taken after Registry.mu
	cancel   context.CancelCauseFunc
	holders  int           // who may still Wait
	dropped  int           // holders whose requests are gone
	begun    bool          // the plugin may have the call: a host that stops lets it finish
	state    State         // what it does
	waitsFor Turn          // the call that runs first; only while it is Queued
	changes  bool          // the call may change something
	plugin   string        // of its tool; "" until it is known
	key      callKey       // identifies a repeated call; zero until it is known
	lease    int           // counts the holds, so that an old timer does not end a new one
	approval string        // the id of the approval that it waits or waited for
	asked    time.Time     // when it began to wait for a person
	changed  chan struct{} // closed and replaced when the state changes
	retry    bool          // its caller was told to repeat the call for the result
	taken    bool          // a holder has the outcome
	kept     bool          // the outcome can be collected again although a holder has it
	outcome  Outcome       // once done is closed
	ended    time.Time     // when done was closed
	joined   *Operation    // once done is closed: the operation that executes the call instead; never itself

	attendants int           // holders who take the tool's questions to the user
	expected   bool          // one of them will attend again
	asker      *Asker        // the attempt that may ask; nil: none
	question   *OpenQuestion // what the tool asks; nil: nothing
	hasAsked   bool          // the tool has asked its user
}

// Call describes the call of an operation.
type Call struct {
	// ID is the call's own id, "tc_" and a UUIDv7.
	ID string
	// Tool is the tool's name as the caller gave it.
	Tool string
	// Caller makes the call; it comes from the credential.
	Caller auth.Caller
	// Started is when the request arrived.
	Started time.Time
	// Sink receives progress and output as long as the operation has holders.
	Sink tool.Sink
	// Attended reports that the caller shows the tool's questions to the user until it calls
	// [Operation.Leave].
	Attended bool
}

// State is what an operation is doing.
type State string

// The states of an operation.
const (
	Running          State = "running"
	Queued           State = "queued" // another call runs first
	AwaitingApproval State = "awaiting_approval"
	AwaitingInput    State = "awaiting_input" // the tool asks its user
	Done             State = "done"
)

// Forever is the patience of a caller that waits for a person without a limit.
const Forever time.Duration = -1

// DefaultPatience is how long a caller waits for a call.
const DefaultPatience = 45 * time.Second

// LongestWait returns how long a caller with the given patience waits for a running call. A
// caller without patience waits for a tool, but not for a person.
func LongestWait(patience time.Duration) time.Duration {
	if patience < time.Second {
		return DefaultPatience
	}
	return patience
}

// Info describes an operation in a list.
type Info struct {
	ID       string    `json:"tool_call_id"`
	Tool     string    `json:"tool"`
	User     string    `json:"user"`
	Client   string    `json:"client,omitempty"`
	Session  string    `json:"session,omitempty"`
	State    State     `json:"state"`
	Approval string    `json:"approval_id,omitempty"`
	WaitsFor string    `json:"waits_for,omitempty"` // the id of the call that runs first, while Queued
	Left     bool      `json:"left,omitempty"`      // no request waits for it now
	Started  time.Time `json:"started"`
}

// ID returns the id of the call.
func (o *Operation) ID() string { return o.call.ID }

// Info describes the operation as it is now.
func (o *Operation) Info() Info {
	o.mu.Lock()
	defer o.mu.Unlock()
	return Info{
		ID: o.call.ID, Tool: o.call.Tool, User: o.call.Caller.User, Client: o.call.Caller.Client,
		Session: o.call.Caller.Session, State: o.state, Approval: o.approval, WaitsFor: o.waitsFor.Call, Left: o.holders <= o.dropped, Started: o.call.Started,
	}
}

// Wait returns the outcome of the operation. If ctx ends first, or the operation
// waits for a person longer than patience, counted from this call of Wait, Wait
// returns an outcome that is Pending, and the operation continues.
func (o *Operation) Wait(ctx context.Context, patience time.Duration) Outcome {
	return o.wait(ctx, patience, false)
}

// Pending returns the outcome of an operation that continues, without waiting. Even if the
// operation has just ended, the caller collects its outcome later.
func (o *Operation) Pending() Outcome {
	if joined := o.joinedOne(); joined != nil {
		return joined.Pending()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	outcome := o.pending(false)
	if outcome.State == Done {
		outcome.State = Running
	}
	return outcome
}

// WaitAttending is [Operation.Wait] for a holder that attends: when the tool
// asks its user, it returns an outcome that is Pending and has the Question.
func (o *Operation) WaitAttending(ctx context.Context, patience time.Duration) Outcome {
	return o.wait(ctx, patience, true)
}

// WaitOrCancel waits for the outcome and never returns one that is Pending. When
// ctx ends first, it cancels the operation unless others hold it too, and
// returns the error that ended ctx.
func (o *Operation) WaitOrCancel(ctx context.Context) Outcome {
	outcome := o.wait(ctx, Forever, false)
	if !outcome.Pending {
		return outcome
	}
	outcome.Pending, outcome.Result = false, tool.ErrorResult(Cause(ctx))
	if !o.giveUp(Cause(ctx), 1) {
		return outcome // others wait for the call, which continues
	}
	<-o.done // at once, since it is canceled
	if o.joined != nil {
		return outcome
	}
	return o.wait(context.WithoutCancel(ctx), Forever, false)
}

func (o *Operation) wait(ctx context.Context, patience time.Duration, attending bool) Outcome {
	if pending, ok := o.awaitEnd(ctx, patience, attending); !ok {
		return pending
	}
	if o.joined != nil {
		outcome := o.joined.wait(ctx, patience, attending)
		if !outcome.Pending {
			o.joined.collected()
		}
		return outcome
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken = true
	return o.outcome
}

// awaitEnd reports whether the operation ended before ctx or patience did, or before
// there was a question for a holder that attends. If not, it returns an outcome that
// is Pending.
func (o *Operation) awaitEnd(ctx context.Context, patience time.Duration, attending bool) (_ Outcome, ended bool) {
	began, over := time.Now(), false
	for {
		o.mu.Lock()
		changed, awaiting := o.changed, o.state == AwaitingApproval
		switch {
		case o.isDone():
			o.mu.Unlock()
			return Outcome{}, true
		case ctx.Err() != nil, over && awaiting, attending && o.question != nil:
			defer o.mu.Unlock()
			return o.pending(attending), false
		}
		since := o.asked
		o.mu.Unlock()

		var impatient <-chan time.Time // never, unless the operation waits for a person
		if awaiting && patience >= 0 {
			if since.Before(began) {
				since = began
			}
			timer := time.NewTimer(time.Until(since.Add(patience)))
			defer timer.Stop()
			impatient = timer.C
		}
		over = false
		select {
		case <-o.done:
		case <-changed:
		case <-impatient:
			over = true
		case <-ctx.Done():
		}
	}
}

// pending returns the outcome of an operation that continues. It is an error of
// code [tool.PendingApproval] only while the call waits for a person. o.mu is held.
func (o *Operation) pending(attending bool) Outcome {
	outcome := Outcome{
		ID: o.call.ID, Tool: o.call.Tool, Duration: time.Since(o.call.Started),
		Approval: o.approval, Pending: true, State: o.state,
	}
	switch o.state {
	case AwaitingApproval:
		outcome.Result = tool.ErrorResult(tool.Errorf(tool.PendingApproval, "Not run yet: waits for a person to approve %s", o.approval))
	case Queued:
		outcome.Result = tool.TextResult("Not run yet: " + o.activity() + ".")
	case Running, AwaitingInput, Done:
		outcome.Result = tool.TextResult("Still running: " + o.activity() + ".")
	}
	if attending && o.question != nil {
		question := o.question.question
		outcome.Question = &question
	}
	return outcome
}

// Keep keeps the outcome after a caller has collected it, so that the caller can collect
// it again by the operation's id, perhaps more than once. Repeating the call then starts a
// new call.
func (o *Operation) Keep() {
	if joined := o.joinedOne(); joined != nil {
		joined.Keep()
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.retry, o.kept = false, true
}

// ReportTo sends the tool's further reports to sink instead of the previous one.
func (o *Operation) ReportTo(to tool.Sink) {
	if joined := o.joinedOne(); joined != nil {
		joined.ReportTo(to)
		return
	}
	o.sink.set(to)
}

// Watch also passes the call's progress reports to a function until stop is called. The
// function must not block.
func (o *Operation) Watch(progress func(tool.Progress)) (stop func()) {
	return o.sink.watch(progress)
}

// Resumed waits until the operation needs neither an approval nor an answer to a question, or
// until ctx ends. It returns at once if the operation waits for neither.
func (o *Operation) Resumed(ctx context.Context, id string) {
	for {
		o.mu.Lock()
		changed := o.changed
		waits := o.state == AwaitingApproval && o.approval == id || o.question != nil && o.question.question.ID == id
		o.mu.Unlock()
		if !waits {
			break
		}
		select {
		case <-changed:
		case <-o.done:
		case <-ctx.Done():
			return
		}
	}
	if joined := o.joinedOne(); joined != nil {
		joined.Resumed(ctx, id)
	}
}

// Cancel ends the operation even if others wait for it, and tells the tool to stop.
func (o *Operation) Cancel() {
	if joined := o.joinedOne(); joined != nil {
		joined.Cancel()
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stop(ErrCanceled)
}

// GiveUp ends the operation unless others wait for it too: its caller has canceled
// the call. A holder whose request is gone does not wait.
func (o *Operation) GiveUp() { o.giveUp(ErrCanceled, 1) }

// GiveUpDropped is [Operation.GiveUp] for a holder that has called [Operation.Drop].
func (o *Operation) GiveUpDropped() { o.giveUp(ErrCanceled, 0) }

// EndSession ends the operation if it waits for a person and no others hold it,
// because the caller's session has ended. An operation that was approved, or needs
// no approval, continues.
func (o *Operation) EndSession() {
	if o.Info().State == AwaitingApproval {
		o.giveUp(ErrCanceled, 1)
	}
}

// giveUp ends the operation unless others wait for it too, and reports whether it ends. own is
// how many waiters give up. If it ends, repeating the call starts a new call.
func (o *Operation) giveUp(cause error, own int) bool {
	if joined := o.joinedOne(); joined != nil {
		return joined.giveUp(cause, own)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	shared := o.holders-o.dropped > own
	if !shared {
		o.retry = false
		o.stop(cause)
	}
	return !shared
}

// stop ends the operation for a reason. It ends the tool's question now: later,
// when the attendants have left, the question would end for another reason.
// o.mu is held.
func (o *Operation) stop(cause error) {
	o.cancel(cause)
	o.asker = nil
	o.endQuestion(questionEnd{err: ErrCanceled})
}

// Release gives up one hold on the operation. The caller of [Registry.Start], [Registry.Find]
// or [Registry.Asking] must call it once.
func (o *Operation) Release() {
	o.mu.Lock()
	o.holders--
	o.dropped = max(0, o.dropped-1)
	last := o.holders == 0
	if last {
		o.sink.set(tool.Sink{})
	}
	collected, joined := last && o.taken && !o.retry && !o.kept, o.joined
	o.mu.Unlock()
	switch {
	case !last:
	case joined != nil:
		joined.Release()
	case collected:
		o.registry.remove(o)
	default:
		o.registry.abandon(o)
	}
}

// Begin marks that the call is being sent to the plugin. It fails if the operation was stopped
// first. finishes reports that a stopping host waits for the call to finish.
func (o *Operation) Begin(ctx context.Context, finishes bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ctx.Err() != nil {
		return Cause(ctx)
	}
	o.begun = finishes
	return nil
}

// SetChanges sets whether the call may change something. Such a call runs to its end even
// without holders.
func (o *Operation) SetChanges(changes bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes = changes
}

// SetApproval sets the id of the call's approval.
func (o *Operation) SetApproval(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.approval = id
}

// AwaitApproval marks that the operation waits for a person to decide about an
// approval, until [Operation.Resume].
func (o *Operation) AwaitApproval(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.approval, o.asked = id, time.Now()
	o.change(AwaitingApproval)
}

// Turn names a call that must end before another one may run.
type Turn struct {
	Call, Tool    string // the call's id, and its tool
	User, Session string // of its caller
}

// Queue marks that the operation waits until another call has ended, until
// [Operation.Resume].
func (o *Operation) Queue(behind Turn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waitsFor = behind
	o.change(Queued)
}

// Resume marks that the operation no longer waits for a person or another call.
func (o *Operation) Resume() {
	o.mu.Lock()
	o.waitsFor = Turn{}
	o.change(Running)
	abandoned := o.state != Done && o.holders == 0
	o.mu.Unlock()
	if abandoned {
		o.registry.abandon(o)
	}
}

// change sets the state of a call that has not ended, and wakes all waiters. o.mu is held.
func (o *Operation) change(state State) {
	if o.state == Done { // a connection of the call asked too late
		return
	}
	o.state = state
	close(o.changed)
	o.changed = make(chan struct{})
}

// end gives the outcome to all waiters. If o joins another operation, o holds that operation
// on behalf of its own holders.
func (o *Operation) end(outcome Outcome, joined *Operation) {
	if joined != nil {
		o.registry.redirect(o, joined) // no new caller holds it from now on
	}
	o.mu.Lock()
	outcome.Approval = o.approval
	o.outcome, o.joined, o.state, o.ended = outcome, joined, Done, time.Now()
	if joined != nil {
		joined.takeOver(o.attendants, o.expected)
	}
	abandoned := o.holders == 0
	close(o.done) // under the mutex, as the state is set
	cancel := o.cancel
	o.cancel = func(error) {} // the outcome may be kept for long, and the context has all of the request
	o.mu.Unlock()
	cancel(nil) // frees the context's resources
	switch {
	case !abandoned:
	case joined != nil:
		joined.Release()
	default:
		o.registry.abandon(o)
	}
}

func (o *Operation) isDone() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// joinedOne returns the operation that o has joined, or nil.
func (o *Operation) joinedOne() *Operation {
	if !o.isDone() {
		return nil
	}
	return o.joined
}
