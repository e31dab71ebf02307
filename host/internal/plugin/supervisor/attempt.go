package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

// attempt is one start that others may wait for.
type attempt struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when err is known
	err    error
}

// begin starts a process for a scope unless one is being started. It is called
// with mu held, after mayStart.
func (k *keeper) begin(ctx context.Context, scope string) *attempt {
	if a := k.starting[scope]; a != nil {
		return a
	}
	// The start outlives the call that asked for it: others wait for it too.
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	k.starting[scope] = a
	k.s.tasks.Go(func() { k.start(ctx, a, scope) }) // bounded by its phases; Close waits
	return a
}

// start runs one attempt.
func (k *keeper) start(ctx context.Context, a *attempt, scope string) {
	defer a.cancel(nil)
	defer close(a.done)
	i, err := k.launch(ctx, scope)
	if err != nil {
		a.err = k.redacted(err)
		k.failed(ctx, scope, a.err)
		return
	}
	// The process outlives its start.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	disconnected := k.connect(life, i)
	if i.can("end_session") {
		i.sessions = make(chan string, maxEnded)
		k.s.tasks.Go(func() { k.tellSessions(life, i) }) // ends with the process; Close waits
	}
	i.revision = k.publish(i.digest, i.about.Tools)

	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.starting, scope)
	k.instances[i.key] = i
	k.refused = nil
	k.digest, k.version = i.digest, i.about.Version
	i.ready = time.Now()
	i.heard, i.lastUsed = i.ready, i.ready
	k.enterFor(i, Ready)
	if k.closed() || k.leaving {
		k.retire(i)
	}
	k.s.tasks.Go(func() { // ends with the process; Close waits
		defer end()
		k.watch(life, i, disconnected)
	})
	k.log.Info("plugin started", "pid", i.runner.ID(), "generation", i.key.generation, "version", i.about.Version, "tools", len(i.about.Tools), "sandbox", i.runner.proc.Report.String())
	k.warnOfMissing(i.runner.proc.Report)
}

// warnOfMissing says which layers a process does without although its sandbox
// requires them, and where protected files were not looked for.
func (k *keeper) warnOfMissing(r sandbox.Report) {
	var missing, remedies []string
	for _, gap := range r.Missing {
		if gap.Unsearched {
			k.log.Warn("not all files that are protected or forbidden by their names are held by the kernel", "reason", gap.Reason, "remedy", gap.Remedy)
		}
		if !gap.Required {
			continue
		}
		missing = append(missing, gap.String())
		if gap.Remedy != "" && !slices.Contains(remedies, gap.Remedy) {
			remedies = append(remedies, gap.Remedy)
		}
	}
	if len(missing) > 0 {
		k.log.Warn("the plugin runs without what its sandbox requires", "missing", strings.Join(missing, ", "), "remedy", strings.Join(remedies, "; "))
	}
}

// newGeneration counts a process that is about to be started from a binary. It
// returns the refusal instead if that binary was refused after an earlier
// start: nothing will be different.
func (k *keeper) newGeneration(program *binary) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refused != nil && k.refused.digest == program.digest {
		return 0, k.refused
	}
	k.generation++
	k.tried, k.triedFile = program.digest, program.id
	k.enter(Starting)
	return k.generation, nil
}

// failed records why a start failed.
func (k *keeper) failed(ctx context.Context, scope string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.starting, scope)
	if k.closed() || k.leaving {
		k.enter(Stopped)
		return
	}
	if refused, ok := errors.AsType[*refusedError](err); ok {
		if k.refused == nil || k.refused.Error() != refused.Error() { // else the log says it already
			k.log.Error("plugin cannot be started", "error", err)
		}
		k.refused = refused
		if k.phase != Broken {
			k.enter(Broken)
		}
		return
	}
	k.refused = nil
	crashed, ok := errors.AsType[*crashError](err)
	switch {
	case ok && !crashed.slow:
		k.recordCrash(crashed.crash, 0)
	case ok: // which the host may be the reason for
		k.lastCrash = crashed.crash
		k.crashes++
		k.backoff.failed(crashed.crash.Time)
	default: // of the host
		k.lastCrash = crashOf(err)
		k.backoff.failed(k.lastCrash.Time)
	}
	k.enterBackoff(ctx)
	k.log.Error("plugin did not start", "error", err)
}

// recordCrash is called with mu held.
func (k *keeper) recordCrash(c *Crash, ready time.Duration) {
	k.lastCrash = c
	k.crashes++
	k.backoff.crashed(c.Time, ready, k.plugin.Restart)
}

// enterBackoff follows the crash of the newest process. It is called with mu
// held.
func (k *keeper) enterBackoff(ctx context.Context) {
	if k.backoff.open(time.Now()) {
		k.enter(Broken)
	} else {
		k.enter(Backoff)
	}
	if k.plugin.Eager && !k.closed() && !k.leaving {
		k.again = time.AfterFunc(k.backoff.wait(time.Now()), func() { k.startAgain(ctx) })
	}
}

// startAgain starts an eager plugin after its backoff.
func (k *keeper) startAgain(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current(sharedScope) == nil && k.mayStart() == nil {
		k.begin(ctx, sharedScope)
	}
}

// ended records the end of a process that was ready.
func (k *keeper) ended(ctx context.Context, i *instance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.instances, i.key)
	if i.stopping && (!i.blamed || k.closed()) {
		k.enterFor(i, Stopped)
		k.log.Info("plugin stopped", "pid", i.runner.ID())
	} else {
		i.crash = i.runner.crash("")
		k.recordCrash(i.crash, time.Since(i.ready))
		if i.key.generation == k.generation {
			k.enterBackoff(ctx)
		}
		k.log.Error("plugin crashed", "pid", i.runner.ID(), "cause", i.crash.Cause, "detail", i.crash.Detail, "calls", i.calls)
	}
	close(i.ended)
}

// publish tells the tools to the host, if they are news, and returns their
// revision: a digest of the program and of the tools that it published, which
// its settings may change.
func (k *keeper) publish(digest string, tools []tool.Spec) (revision string) {
	// As JSON, since the manifest cache changes the white space of schemas.
	encoded, err := json.Marshal(tools)
	if err != nil { // what no catalog will take, and no cache has
		encoded = fmt.Appendf(nil, "%+v", tools)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s", digest, encoded)
	revision = fmt.Sprintf("sha256:%x", sum.Sum(nil))

	k.publishMu.Lock()
	defer k.publishMu.Unlock()
	if k.silent {
		k.unsaid = &publication{revision: revision, tools: tools}
	} else {
		k.say(publication{revision: revision, tools: tools})
	}
	return revision
}
