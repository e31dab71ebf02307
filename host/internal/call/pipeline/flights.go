package pipeline

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/sdk/tool"
)

// flights are the calls under way, and those whose result waits to be
// collected.
type flights struct {
	keep time.Duration

	mu     sync.Mutex // guards what follows; taken before Flight.mu
	byID   map[string]*Flight
	owed   map[flightKey]*Flight // whose callers were told to make the same call again, unless one has by now
	keyed  map[idempotencyKey]*Flight
	timers map[*Flight]*time.Timer
	users  map[string]int // how many flights each user has
	// others leads from the ids of flights that follow one to that one.
	others   map[string]*Flight
	draining bool // no flight is added
	closed   bool // none is left either
	flying   sync.WaitGroup
}

// flightKey says which calls are the same call made again.
type flightKey struct {
	user, client, tool, arguments string
}

// idempotencyKey is a key that a user has chosen for a call.
type idempotencyKey struct{ user, key string }

// Start begins a call and returns at once. The end of ctx does not end the
// call. The caller must Release the flight.
func (p *Pipeline) Start(ctx context.Context, req Request) *Flight {
	if req.Caller.Session == "" {
		req.Caller.Session = req.Caller.Client // the calls of a program that says nothing of sessions form one
	}
	c := &call{Request: req, id: newCallID(), started: time.Now()}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &Flight{
		p: p, call: c, cancel: cancel, done: make(chan struct{}),
		holders: 1, state: Running, changed: make(chan struct{}),
	}
	if req.Attended {
		f.attendants = 1
	}
	f.sink.to = req.Sink
	c.flight = f
	if !p.flights.add(f) {
		f.end(p.finish(ctx, c, tool.Result{}, ErrStopping), nil)
		return f
	}
	go f.fly(ctx) // ends with the call; Pipeline.Close waits for it
	return f
}

func (f *Flight) fly(ctx context.Context) {
	defer f.p.flights.flying.Done()
	defer f.recover()
	result, err := f.p.run(ctx, f.call)
	if other, ok := errors.AsType[*following](err); ok {
		f.end(Outcome{}, other.flight)
		return
	}
	f.end(f.p.finish(ctx, f.call, result, err), nil)
}

// recover makes a panic in the end of a call the end of that call only.
func (f *Flight) recover() {
	if value := recover(); value != nil {
		f.p.opts.Logger.Error("panic at the end of a call", "call", f.call.id, "panic", value, "stack", string(debug.Stack()))
		f.p.flights.unclaim(f.call)
		f.end(Outcome{ID: f.call.id, Tool: f.call.Tool, Result: tool.ErrorResult(f.p.callerError(f.call, errPanic))}, nil)
	}
}

// Call runs one call and always returns its outcome: at the latest when the
// tool's time-out is over, a person has answered, or ctx ends, which cancels
// it unless others wait for the same call.
func (p *Pipeline) Call(ctx context.Context, req Request) Outcome {
	f := p.Start(ctx, req)
	defer f.Release()
	outcome := f.Wait(ctx, Forever)
	if !outcome.Pending {
		return outcome
	}
	outcome.Pending, outcome.Result = false, tool.ErrorResult(causeOf(ctx))
	if !f.giveUp(causeOf(ctx)) {
		return outcome // others wait for the call, which goes on
	}
	<-f.done // at once, since it is canceled
	if f.follows != nil {
		return outcome
	}
	return f.Wait(context.WithoutCancel(ctx), Forever)
}

// Flight returns a call under way, or one whose result was not collected, to
// its own user or to an admin. The caller must Release it.
func (p *Pipeline) Flight(id string, by auth.Caller) (*Flight, bool) {
	p.flights.mu.Lock()
	defer p.flights.mu.Unlock()
	f := p.flights.byID[id]
	if f == nil {
		f = p.flights.others[id]
	}
	if f == nil || !visible(f, by) {
		return nil, false
	}
	p.flights.hold(f)
	return f, true
}

// Asking returns the flight whose call was asked about in a record, to its own
// user or to an admin: the latest if there are several. The caller must Release
// it.
func (p *Pipeline) Asking(approval string, by auth.Caller) (*Flight, bool) {
	p.flights.mu.Lock()
	defer p.flights.mu.Unlock()
	var latest *Flight
	for _, f := range p.flights.byID {
		if visible(f, by) && f.Info().Approval == approval && (latest == nil || f.call.id > latest.call.id) {
			latest = f
		}
	}
	if latest == nil {
		return nil, false
	}
	p.flights.hold(latest)
	return latest, true
}

// CallerOf returns who makes a call under way, from the credential.
func (p *Pipeline) CallerOf(id string) (auth.Caller, bool) {
	p.flights.mu.Lock()
	defer p.flights.mu.Unlock()
	f := p.flights.byID[id]
	if f == nil {
		return auth.Caller{}, false
	}
	return f.call.Caller, true
}

// Count returns how many calls of a user are under way or have results that
// were not collected.
func (p *Pipeline) Count(user string) int {
	p.flights.mu.Lock()
	defer p.flights.mu.Unlock()
	return p.flights.users[user]
}

// Revoke cancels the calls of callers whose credential does not count any more.
func (p *Pipeline) Revoke(counts func(auth.Caller) bool) {
	p.flights.mu.Lock()
	defer p.flights.mu.Unlock()
	for _, f := range p.flights.byID {
		if !counts(f.call.Caller) {
			f.mu.Lock()
			f.stop(errRevoked)
			f.mu.Unlock()
		}
	}
}

// Flights lists the calls that a caller may see: its own, or all for an admin;
// the oldest first.
func (p *Pipeline) Flights(by auth.Caller) []FlightInfo {
	p.flights.mu.Lock()
	defer p.flights.mu.Unlock()
	list := make([]FlightInfo, 0, len(p.flights.byID))
	for _, f := range p.flights.byID {
		if visible(f, by) {
			list = append(list, f.Info())
		}
	}
	slices.SortFunc(list, func(a, b FlightInfo) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

func visible(f *Flight, by auth.Caller) bool {
	return by.Roles.Has(auth.Admin) || f.call.Caller.User == by.User
}

// add makes a flight known; it fails when the pipeline drains or is closed.
func (s *flights) add(f *Flight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.flying.Add(1)
	s.byID[f.call.id] = f
	s.users[f.call.Caller.User]++
	return true
}

// hold counts one more holder. s.mu is held.
func (s *flights) hold(f *Flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holders++
	f.lease++
	s.disarm(f)
}

// disarm stops the time after which a flight that nobody holds ends. Both
// mutexes are held.
func (s *flights) disarm(f *Flight) {
	if timer := s.timers[f]; timer != nil {
		timer.Stop()
		delete(s.timers, f)
	}
}

// owe says that the caller of a flight was told to make the same call again for
// the result.
func (s *flights) owe(f *Flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owed = true
	if s.byID[f.call.id] == f && f.key != (flightKey{}) { // else collect does it
		s.owed[f.key] = f
	}
}

// collect returns the flight whose caller was told to make this very call
// again, if there is one, held for the flight of the new call, which it reports
// to from now on. Until somebody has its outcome, each such call finds it.
func (s *flights) collect(c *call) *Flight {
	key := flightKey{c.Caller.User, c.Caller.Client, c.entry.Spec.Name, c.hash}
	c.flight.identify(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.owed[key]; f != nil && f != c.flight && f.isOwed() {
		s.follow(f, c)
		return f
	}
	delete(s.owed, key)
	if c.flight.isOwed() {
		s.owed[key] = c.flight
	}
	return nil
}

// claim takes the idempotency key of a call for its flight. If another flight
// has the key, it returns that one: held for the flight of c if it carries the
// same call.
func (s *flights) claim(c *call) (first *Flight, same bool) {
	key := idempotencyKey{c.Caller.User, c.IdempotencyKey}
	s.mu.Lock()
	defer s.mu.Unlock()
	first = s.keyed[key]
	if first == nil {
		s.keyed[key] = c.flight
		return nil, false
	}
	if first.carries(c) {
		s.follow(first, c)
		return first, true
	}
	return first, false
}

// unclaim gives the idempotency key of a call back.
func (s *flights) unclaim(c *call) {
	key := idempotencyKey{c.Caller.User, c.IdempotencyKey}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keyed[key] == c.flight {
		delete(s.keyed, key)
	}
}

// follow holds f for the flight of c. s.mu is held.
func (s *flights) follow(f *Flight, c *call) {
	s.hold(f)
	f.sink.set(c.flight.sink.get())
}

// abandon begins the time after which a flight that nobody holds is canceled,
// or its result dropped.
func (s *flights) abandon(f *Flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holders > 0 || s.byID[f.call.id] != f || s.closed {
		return
	}
	s.disarm(f)
	lease, keep := f.lease, s.keep
	if f.owed {
		keep *= owedFactor
	}
	s.timers[f] = time.AfterFunc(keep, func() { s.expire(f, lease) })
	if f.state == Done {
		s.fit(f.call.Caller.User)
	}
}

const (
	// owedFactor is how much longer a result is kept whose caller was told to
	// come back for it: who comes later has the call run anew.
	owedFactor = 6
	// maxKeptResults bounds the results of one user that nobody has collected.
	maxKeptResults = 64 * tool.MiB
)

// fit drops the oldest results of a user that nobody holds until the rest fits.
// s.mu is held.
func (s *flights) fit(user string) {
	var kept []*Flight
	total := int64(0)
	for f := range s.timers {
		if f.call.Caller.User == user && f.isDone() {
			kept = append(kept, f)
			total += size(f.outcome.Result)
		}
	}
	slices.SortFunc(kept, func(a, b *Flight) int { return cmp.Compare(a.call.id, b.call.id) })
	for _, f := range kept {
		if total <= int64(maxKeptResults) {
			return
		}
		total -= size(f.outcome.Result)
		s.forget(f) // it has ended, so that nothing of it changes any more
	}
}

// expire ends a flight that nobody came back for. One that waits for a person
// lives as long as the question does.
func (s *flights) expire(f *Flight, lease int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.lease != lease: // somebody came back
	case f.state == Done:
		s.forget(f)
	case f.state == Running || f.state == AwaitingInput:
		f.stop(errAbandoned)
	case f.state == AwaitingApproval: // abandoned anew when it is answered
	}
}

// maxOthers bounds the ids that lead to other flights.
const maxOthers = 10_000

// redirect drops a flight that follows another one. Its id leads there.
func (s *flights) redirect(f, follows *Flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mu.Lock()
	s.forget(f)
	f.mu.Unlock()
	if s.byID[follows.call.id] == follows && len(s.others) < maxOthers {
		s.others[f.call.id] = follows
	}
}

// remove drops a flight whose outcome has been collected.
func (s *flights) remove(f *Flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	s.forget(f)
}

// forget drops a flight. Both mutexes are held.
func (s *flights) forget(f *Flight) {
	if s.byID[f.call.id] != f {
		return
	}
	delete(s.byID, f.call.id)
	maps.DeleteFunc(s.others, func(_ string, other *Flight) bool { return other == f })
	if user := f.call.Caller.User; s.users[user] > 1 {
		s.users[user]--
	} else {
		delete(s.users, user)
	}
	s.disarm(f)
	if s.owed[f.key] == f {
		delete(s.owed, f.key)
	}
}

// drain ends the flights whose calls have not begun, and returns when the others
// have ended, or ctx has. No flight is added from now on.
func (s *flights) drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	for _, f := range s.byID {
		f.mu.Lock()
		if !f.begun {
			f.stop(ErrStopping)
		}
		f.mu.Unlock()
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { // ends with the flights, which close waits for
		s.flying.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// close cancels every flight and returns when none is under way.
func (s *flights) close() {
	s.mu.Lock()
	s.draining, s.closed = true, true
	for _, f := range s.byID {
		f.mu.Lock()
		f.stop(ErrStopping)
		f.mu.Unlock()
	}
	for f, timer := range s.timers {
		timer.Stop()
		delete(s.timers, f)
	}
	s.mu.Unlock()
	s.flying.Wait()
}
