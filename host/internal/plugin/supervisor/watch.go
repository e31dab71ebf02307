package supervisor

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// watch looks after one process until it has ended: its end, its health, its
// idleness and the wish to stop it all arrive here.
func (k *keeper) watch(ctx context.Context, i *instance, disconnected <-chan struct{}) {
	probe := time.NewTimer(k.s.timing.quiet)
	defer probe.Stop()
	idle := time.NewTimer(k.plugin.IdleTimeout)
	defer idle.Stop()
	patrol := time.NewTicker(k.s.timing.patrol)
	defer patrol.Stop()
	var answered <-chan error    // of a probe under way
	var overdue <-chan time.Time // when a call that was given up should have ended
	for {
		select {
		case <-i.runner.exited:
			k.ended(ctx, i)
			i.discard()
			return
		case <-i.stop:
			k.drain(ctx, i)
			i.discard()
			k.ended(ctx, i)
			return
		case <-disconnected:
			if !within(exitGrace, i.runner.exited) {
				i.runner.end("closed its connection to the host")
			}
			disconnected = nil
		case <-probe.C:
			if rest := k.untilProbe(i); rest > 0 {
				probe.Reset(rest)
			} else {
				answered = k.probe(ctx, i)
			}
		case err := <-answered:
			answered = nil
			probe.Reset(k.probed(i, err))
		case rest := <-i.gaveUp:
			if overdue == nil {
				overdue = time.After(rest)
			}
		case <-overdue:
			overdue = nil
			if !k.replace(ctx, i) {
				overdue = time.After(k.s.timing.obey)
			}
		case <-idle.C:
			idle.Reset(k.idle(i))
		case <-patrol.C:
			k.patrol(ctx, i)
		}
	}
}

// connect opens the plugin's channel to the host, if it has one, and returns
// when the plugin has taken it up, so that no call comes before it can ask. A
// plugin that does not take it up in time gets its calls all the same. The end
// of the process ends the channel, and so does ctx.
func (k *keeper) connect(ctx context.Context, i *instance) (done <-chan struct{}) {
	if !i.can("connect") {
		return nil
	}
	ended, attached := make(chan struct{}), make(chan struct{})
	k.s.tasks.Go(func() { // ends with ctx, which outlives the process by little
		defer close(ended)
		err := i.wire.connect(ctx, func() { close(attached) })
		if errors.Is(err, errUnread) {
			i.runner.blame(errUnread.Error())
		}
		k.log.Debug("the plugin's channel to the host ended", "reason", k.s.opts.Redact(cleanLine(errorText(err))))
	})
	if !within(k.s.timing.attach, attached) {
		k.log.Warn("the plugin does not take up its channel to the host", "within", k.s.timing.attach)
	}
	return ended
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// drain lets the plugin finish its calls. One that cannot is stopped.
func (k *keeper) drain(ctx context.Context, i *instance) {
	k.mu.Lock()
	suspect, patience := i.suspect, i.patience
	k.mu.Unlock()
	if (suspect || patience > 0) && !k.awaitCalls(i, patience) {
		return
	}
	if !i.can("drain") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.s.timing.finish)
	defer cancel()
	err := i.wire.drain(ctx)
	if err == nil {
		return
	}
	k.log.Debug("the plugin did not finish what it did", "error", k.s.opts.Redact(cleanLine(err.Error())))
	if suspect && status.Code(err) == codes.DeadlineExceeded {
		k.mu.Lock()
		i.blamed = true
		k.mu.Unlock()
		i.runner.blame("did not stop a call when it was told to")
	}
}

// awaitCalls waits until a process that gets no new calls has ended its own,
// for as long as patience allows; 0 means that they have an end of their own.
// It reports false if the process has ended.
func (k *keeper) awaitCalls(i *instance, patience time.Duration) bool {
	var over <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-i.unused:
	case <-over:
		k.log.Warn("the plugin is stopped although it has calls, after another process has replaced it", "pid", i.runner.ID(), "after", patience)
	case <-k.closing:
	case <-i.runner.exited:
		k.mu.Lock()
		defer k.mu.Unlock()
		i.blamed = i.blamed || patience > 0 // nobody has asked it to end
		return false
	}
	return true
}

// giveUp makes sure that a call ends for which the host no longer waits. A
// plugin that can tell when a call has ended is asked; of one that cannot, the
// process is replaced in time, since gRPC forgets a call when it is canceled.
func (k *keeper) giveUp(ctx context.Context, i *instance, call string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed():
	case i.can("drain_call"):
		ctx = context.WithoutCancel(ctx)
		k.s.tasks.Go(func() { k.awaitEnd(ctx, i, call) }) // bounded; Close waits
	default:
		i.suspects(k.s.timing.obey)
	}
}

// awaitEnd waits for the plugin to end a call, for as long as that may take.
func (k *keeper) awaitEnd(ctx context.Context, i *instance, call string) {
	ctx, cancel := context.WithTimeout(ctx, k.s.timing.obey)
	defer cancel()
	if err := i.wire.drainCall(ctx, call); status.Code(err) != codes.DeadlineExceeded {
		return // it has ended, or the process has
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	i.suspects(0)
}

// replace retires a process that may still work on a call which was given up.
// It reports false if it must wait: while an older process
// finishes its calls, there is no room for a third.
func (k *keeper) replace(ctx context.Context, i *instance) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, n := k.oldest(i.key.scope); n >= maxGenerations {
		return false
	}
	k.retire(i)
	if k.plugin.Eager && k.mayStart() == nil {
		k.begin(ctx, i.key.scope)
	}
	return true
}

// idle retires a process that has had no call for long enough, and returns
// when to look again.
func (k *keeper) idle(i *instance) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	rest := k.plugin.IdleTimeout - time.Since(i.lastUsed)
	switch {
	case k.plugin.Eager || i.calls > 0:
		return k.plugin.IdleTimeout
	case rest > 0:
		return rest
	}
	k.retire(i)
	return k.plugin.IdleTimeout
}
