package operation

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// retryFactor is how much longer the registry keeps a result if its caller was told to
	// make the same call again. Once the result is dropped, that call runs again.
	retryFactor = 6
	// retryReads is how long a read-only call that has ended gives its result to the same call
	// made again. After that, the repeated call runs and reads again.
	retryReads = time.Minute
	// maxKeptResults and maxKept bound the uncollected results of one user, in
	// bytes and in number.
	maxKeptResults = 64 * tool.MiB
	maxKept        = 1000
	// maxOthers bounds the ids that lead to other operations.
	maxOthers = 10_000
)

// Registry holds the calls in progress, and those whose results have not been
// collected. Its methods may be called from any goroutine.
type Registry struct {
	keep time.Duration

	mu     sync.Mutex // guards what follows; taken before Operation.mu
	byID   map[string]*Operation
	retry  map[callKey]*Operation // whose callers were told to make the same call again, unless one has already
	keyed  map[idempotencyKey]*Operation
	timers map[*Operation]*time.Timer
	users  map[string]int // how many operations each user has
	// others maps the id of an operation that joined another one to the one it joined.
	others   map[string]*Operation
	draining bool // no operation is added
	closed   bool // none is left either
	running  sync.WaitGroup
}

// NewRegistry returns a registry that keeps an operation without holders, and the
// result of one, for the given time. The caller must Close it.
func NewRegistry(keep time.Duration) *Registry {
	return &Registry{
		keep: keep, byID: make(map[string]*Operation), retry: make(map[callKey]*Operation),
		keyed: make(map[idempotencyKey]*Operation), timers: make(map[*Operation]*time.Timer),
		users: make(map[string]int), others: make(map[string]*Operation),
	}
}

// Start starts an operation and returns at once. The end of ctx does not end the
// operation. The caller must Release it.
//
// execute executes the call and returns its outcome, or the operation that the
// call joins; it must not panic. Once the registry drains, its context has ended
// with [ErrStopping].
func (r *Registry) Start(ctx context.Context, call Call, execute func(context.Context, *Operation) (Outcome, *Operation)) *Operation {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	o := &Operation{
		registry: r, call: call, cancel: cancel, done: make(chan struct{}),
		holders: 1, state: Running, changed: make(chan struct{}),
	}
	if call.Attended {
		o.attendants = 1
	}
	o.sink.to, o.call.Sink = call.Sink, tool.Sink{} // the outcome may be kept for long after the request
	if !r.add(o) {
		cancel(ErrStopping)
		o.end(execute(ctx, o))
		return o
	}
	go func() { // ends with the call; Close waits for it
		defer r.running.Done()
		o.end(execute(ctx, o))
	}()
	return o
}

// Find returns an operation if the caller is its user or an admin. The caller must Release it.
func (r *Registry) Find(id string, by auth.Caller) (*Operation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.byID[id]
	if o == nil {
		o = r.others[id]
	}
	if o == nil || !visible(o, by) {
		return nil, false
	}
	r.hold(o)
	return o, true
}

// Asking returns the operation that an approval is for, if the caller is its user or an admin.
// If there are several, it returns the latest. The caller must Release it.
func (r *Registry) Asking(approval string, by auth.Caller) (*Operation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var latest *Operation
	for _, o := range r.byID {
		if visible(o, by) && o.Info().Approval == approval && (latest == nil || o.call.ID > latest.call.ID) {
			latest = o
		}
	}
	if latest == nil {
		return nil, false
	}
	r.hold(latest)
	return latest, true
}

// CallerOf returns the caller of an operation, from its credential.
func (r *Registry) CallerOf(id string) (auth.Caller, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.byID[id]
	if o == nil {
		return auth.Caller{}, false
	}
	return o.call.Caller, true
}

// Count returns how many operations a user has, uncollected results included.
func (r *Registry) Count(user string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.users[user]
}

// List returns the operations that a caller may see, the oldest first: its own,
// or all for an admin.
func (r *Registry) List(by auth.Caller) []Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Info, 0, len(r.byID))
	for _, o := range r.byID {
		if visible(o, by) {
			list = append(list, o.Info())
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Sees reports whether a caller may see the call with an id, if the registry has it.
func (r *Registry) Sees(id string, by auth.Caller) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.byID[id]
	return o != nil && visible(o, by)
}

// visible reports whether a caller may see an operation: its own user's, or any for an
// admin. To a caller with toolsets, the calls of other tools do not exist, except those
// that it has made itself.
func visible(o *Operation, by auth.Caller) bool {
	made := o.call.Caller
	switch {
	case by.Roles.Has(auth.Admin):
		return true
	case made.User != by.User:
		return false
	}
	return made.Token == by.Token || by.MayUse(cmp.Or(o.currentKey().tool, o.call.Tool))
}

// Revoke cancels the operations of callers whose credential is no longer valid.
func (r *Registry) Revoke(valid func(auth.Caller) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.byID {
		if !valid(o.call.Caller) {
			o.mu.Lock()
			o.stop(ErrRevoked)
			o.mu.Unlock()
		}
	}
}

// Drain cancels the operations whose calls have not begun, and returns when the
// others have ended, or ctx has. Operations started later end at once.
func (r *Registry) Drain(ctx context.Context) {
	r.mu.Lock()
	r.draining = true
	for _, o := range r.byID {
		o.mu.Lock()
		if !o.begun {
			o.stop(ErrStopping)
		}
		o.mu.Unlock()
	}
	r.mu.Unlock()
	ended := make(chan struct{})
	go func() { // ends with the operations, which Close waits for
		r.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// Close cancels all operations and returns when all have ended.
func (r *Registry) Close() {
	r.mu.Lock()
	r.draining, r.closed = true, true
	for _, o := range r.byID {
		o.mu.Lock()
		o.stop(ErrStopping)
		o.mu.Unlock()
	}
	for o, timer := range r.timers {
		timer.Stop()
		delete(r.timers, o)
	}
	r.mu.Unlock()
	r.running.Wait()
}

// add registers an operation; it returns false when the registry drains or is
// closed.
func (r *Registry) add(o *Operation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining {
		return false
	}
	r.running.Add(1)
	r.byID[o.call.ID] = o
	r.users[o.call.Caller.User]++
	return true
}

// hold counts one more holder. r.mu is held.
func (r *Registry) hold(o *Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holders++
	o.lease++
	r.disarm(o)
}

// disarm stops the timer that ends an operation without holders. Both mutexes
// are held.
func (r *Registry) disarm(o *Operation) {
	if timer := r.timers[o]; timer != nil {
		timer.Stop()
		delete(r.timers, o)
	}
}

// abandon starts the timer that cancels an operation without holders, or drops
// its result.
func (r *Registry) abandon(o *Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.holders > 0 || r.byID[o.call.ID] != o || r.closed {
		return
	}
	r.disarm(o)
	lease, keep := o.lease, r.keep
	if o.retry {
		keep *= retryFactor
	}
	r.timers[o] = time.AfterFunc(keep, func() { r.expire(o, lease) })
	if o.state == Done {
		r.shrink(o.call.Caller.User)
	}
}

// shrink drops the oldest results of a user that have no holders until the rest
// fits. r.mu is held.
func (r *Registry) shrink(user string) {
	var kept []*Operation
	total := int64(0)
	for o := range r.timers {
		if o.call.Caller.User == user && o.isDone() {
			kept = append(kept, o)
			total += Size(o.outcome.Result)
		}
	}
	slices.SortFunc(kept, func(a, b *Operation) int { return cmp.Compare(a.call.ID, b.call.ID) })
	for i, o := range kept {
		if total <= int64(maxKeptResults) && len(kept)-i <= maxKept {
			return
		}
		total -= Size(o.outcome.Result)
		r.forget(o) // it has ended: nothing of it changes any more
	}
}

// expire ends an operation that no caller came back for. An operation that waits for a person
// lives as long as its approval. One that changes something runs to its end, which its tool's
// time-out bounds.
func (r *Registry) expire(o *Operation, lease int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.lease != lease: // a caller came back
	case o.state == Done:
		r.forget(o)
	case o.state == AwaitingApproval: // abandoned again when it is answered
	case o.changes && o.state != AwaitingInput: // abandoned again when it has ended
	default:
		o.stop(errAbandoned)
	}
}

// remove drops an operation whose outcome has been collected.
func (r *Registry) remove(o *Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	r.forget(o)
}

// forget drops an operation. Both mutexes are held.
func (r *Registry) forget(o *Operation) {
	if r.byID[o.call.ID] != o {
		return
	}
	delete(r.byID, o.call.ID)
	maps.DeleteFunc(r.others, func(_ string, other *Operation) bool { return other == o })
	if user := o.call.Caller.User; r.users[user] > 1 {
		r.users[user]--
	} else {
		delete(r.users, user)
	}
	r.disarm(o)
	if r.retry[o.key] == o {
		delete(r.retry, o.key)
	}
}
