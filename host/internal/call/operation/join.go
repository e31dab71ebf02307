package operation

import "time"

// A call joins an operation in two cases: its caller was told to make the same
// call again for the result, or both calls have the same idempotency key.

// callKey identifies the same call made again.
type callKey struct {
	user, client, session, tool, arguments string
}

// idempotencyKey is a key that a user has chosen for a call.
type idempotencyKey struct{ user, key string }

// KeepForRetry marks that the caller was told to repeat the call to get the result. Repeated
// calls join o until one of them has the result.
func (o *Operation) KeepForRetry() {
	if joined := o.joinedOne(); joined != nil {
		joined.KeepForRetry()
		return
	}
	r := o.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.retry = true
	if r.byID[o.call.ID] == o && o.key != (callKey{}) { // if the key is not known yet, FindRetried does it
		r.retry[o.key] = o
	}
}

// Drop marks that a holder waits for an outcome that its client does not read, since the
// request is gone. The holder keeps the operation, so that the caller can still cancel it; the
// same call made again joins it.
func (o *Operation) Drop() {
	o.KeepForRetry()
	if joined := o.joinedOne(); joined != nil {
		o = joined
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropped++
}

// FindRetried sets the tool and the hash of the arguments of an operation. It returns the
// operation whose caller was told to repeat this call, or nil. That operation is held for o
// and reports to the sink of o from now on. Every such call finds it until one of them has its
// outcome.
func (r *Registry) FindRetried(o *Operation, tool, arguments string) *Operation {
	by := o.call.Caller
	key := callKey{by.User, by.Client, by.Session, tool, arguments}
	o.identify(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	if earlier := r.retry[key]; earlier != nil && earlier != o && earlier.isKeptForRetry() {
		r.join(o, earlier)
		return earlier
	}
	delete(r.retry, key)
	if o.isKeptForRetry() {
		r.retry[key] = o
	}
	return nil
}

// Claim takes an idempotency key for an operation. If another operation of the
// user has the key, Claim returns that one: held for o if its call is the same,
// as same reports. [Registry.FindRetried] must have been called for o.
func (r *Registry) Claim(o *Operation, key string) (first *Operation, same bool) {
	claimed := idempotencyKey{o.call.Caller.User, key}
	r.mu.Lock()
	defer r.mu.Unlock()
	first = r.keyed[claimed]
	if first == nil {
		r.keyed[claimed] = o
		return nil, false
	}
	if first.isSameCall(o) {
		r.join(o, first)
		return first, true
	}
	return first, false
}

// Unclaim frees the idempotency key of an operation.
func (r *Registry) Unclaim(o *Operation, key string) {
	claimed := idempotencyKey{o.call.Caller.User, key}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keyed[claimed] == o {
		delete(r.keyed, claimed)
	}
}

// join holds an earlier operation for o. r.mu is held.
func (r *Registry) join(o, earlier *Operation) {
	r.hold(earlier)
	earlier.sink.set(o.sink.get())
}

// redirect drops an operation that joined another one, and leads its id there.
func (r *Registry) redirect(o, joined *Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o.mu.Lock()
	r.forget(o)
	o.mu.Unlock()
	if r.byID[joined.call.ID] == joined && len(r.others) < maxOthers {
		r.others[o.call.ID] = joined
	}
}

// identify records the key that matches this call when it is repeated.
func (o *Operation) identify(key callKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.key = key
}

// isSameCall reports whether both operations have the same tool and arguments.
// The client does not matter: the idempotency key identifies the call.
func (o *Operation) isSameCall(other *Operation) bool {
	a, b := o.currentKey(), other.currentKey()
	return a.tool == b.tool && a.arguments == b.arguments
}

func (o *Operation) currentKey() callKey {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.key
}

// collected marks that a repeated call has the result.
func (o *Operation) collected() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.retry = false
}

func (o *Operation) isKeptForRetry() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	outdated := o.state == Done && !o.changes && time.Since(o.ended) > retryReads
	return o.retry && !outdated
}
