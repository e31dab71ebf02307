package supervisor

import (
	"context"
	"errors"
	"reflect"

	"github.com/toolhost/toolhost/sdk/tool"
)

// errSuperseded is for calls that came to a keeper which another one has
// replaced: they belong to that one.
var errSuperseded = errors.New("the plugin's options have changed")

// learned is what a program has told of itself, at a start or at an earlier one.
type learned struct {
	program string // its digest
	schema  []byte // of its settings
	outcome string // of evaluating its settings
}

// publication is what is to be published.
type publication struct {
	revision string
	tools    []tool.Spec
}

// outcomeOf tells whether settings are evaluated to the same.
func outcomeOf(settings []byte, err error) string {
	if err != nil {
		return "wrong " + digestOf([]byte(err.Error()))
	}
	return digestOf(settings)
}

// learn notes what a program has told, and how its settings were evaluated.
func (k *keeper) learn(l learned) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tried, k.learned = l.program, l
}

// settle waits until the keeper starts nothing, so that what there is to know
// of the plugin is known.
func (k *keeper) settle(ctx context.Context) error {
	for {
		k.mu.Lock()
		start := k.starting[sharedScope]
		k.mu.Unlock()
		if start == nil {
			return nil
		}
		select {
		case <-start.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// unchanged reports whether the plugin can go on as it is with new options.
func (k *keeper) unchanged(p Plugin) bool {
	if !sameOptions(k.plugin, p.withDefaults()) {
		return false
	}
	program, err := openBinary(p, &k.s.hashes)
	if err != nil {
		k.log.Warn("the plugin's program cannot be used; the plugin stays as it is", "error", err)
		return true
	}
	defer program.file.Close()
	k.mu.Lock()
	tried, known := k.tried, k.learned
	k.mu.Unlock()
	switch {
	case program.digest != tried:
		return false
	case program.digest != known.program:
		return true // it told nothing before it failed, and would not now
	}
	return outcomeOf(evaluate(p, known.schema)) == known.outcome
}

// sameOptions compares all but the functions.
func sameOptions(a, b Plugin) bool {
	a.Settings, a.Locate, b.Settings, b.Locate = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

// prepare makes the tools of a plugin known, and starts it if it is to run or
// if nobody knows whether it would. Its error is for operators.
func (k *keeper) prepare(ctx context.Context, run bool) error {
	if schema, known := KnownSchema(k.s.opts.StateDir, k.plugin); known {
		if _, err := k.settings(schema); err != nil {
			return err
		}
	}
	if !run && !k.plugin.Eager && k.recall() {
		return nil
	}
	if err := k.ensure(ctx); err != nil {
		return operatorError(err)
	}
	return nil
}

// follow makes the keeper count on from the one that it is to replace, and
// reports whether that one has a process.
func (k *keeper) follow(old *keeper) (runs bool) {
	old.mu.Lock()
	defer old.mu.Unlock()
	k.generation, k.crashes, k.lastCrash = old.generation, old.crashes, old.lastCrash
	return old.current(sharedScope) != nil
}

// adopt takes the functions of options that are the same otherwise, and
// forgets crashes.
func (k *keeper) adopt(p Plugin) {
	k.own.Store(&p)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.backoff = restarts{}
	if k.refused == nil && (k.phase == Broken || k.phase == Backoff) {
		k.enter(Stopped)
	}
}

// speak publishes what was held back, unless it is what the host knows
// already.
func (k *keeper) speak(known string) {
	k.publishMu.Lock()
	defer k.publishMu.Unlock()
	k.silent, k.published = false, known
	if k.unsaid != nil {
		k.say(*k.unsaid)
	}
	k.unsaid = nil
}

// say is called with publishMu held.
func (k *keeper) say(p publication) {
	if k.published != p.revision {
		k.published = p.revision
		k.s.opts.Publish(k.plugin.Name, p.revision, p.tools)
	}
}

// leave ends the keeper's work: it publishes nothing more, starts nothing and
// takes no calls. Its processes may finish those that they have. It does not
// wait for them, and returns the revision that is published.
func (k *keeper) leave() (published string) {
	k.publishMu.Lock()
	k.silent, published = true, k.published
	k.publishMu.Unlock()

	k.mu.Lock()
	defer k.mu.Unlock()
	k.leaving = true
	if k.again != nil {
		k.again.Stop()
	}
	for _, a := range k.starting {
		a.cancel(errSuperseded)
	}
	for _, i := range k.instances {
		if !i.stopping {
			i.patience = k.s.timing.drain
			i.why = "its configuration or its program changed"
		}
		k.retire(i)
	}
	return published
}

// awaitEmpty waits until a keeper that starts nothing more has no process.
func (k *keeper) awaitEmpty() {
	for {
		over := k.undone()
		if over == nil {
			return
		}
		<-over
	}
}

// undone is closed when one of the keeper's starts or processes is over; it is
// nil if there is none.
func (k *keeper) undone() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range k.starting {
		return a.done
	}
	for _, i := range k.instances {
		return i.ended
	}
	return nil
}
