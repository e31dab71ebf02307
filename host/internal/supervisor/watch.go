package supervisor

import (
	"context"
	"time"
)

// watch looks after one process until it has ended: its end, its health, its
// idleness and the wish to stop it all arrive here.
func (k *keeper) watch(ctx context.Context, i *instance) {
	// ctx ends with the start that it belongs to; the process goes on.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	probe := time.NewTimer(k.s.timing.quiet)
	defer probe.Stop()
	idle := time.NewTimer(k.plugin.IdleTimeout)
	defer idle.Stop()
	disconnected := k.connect(ctx, i)
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
			probe.Reset(k.probe(ctx, i))
		case <-idle.C:
			idle.Reset(k.idle(i))
		}
	}
}

// connect opens the plugin's channel to the host, if it has one. The end of
// the process ends it, and so does ctx.
func (k *keeper) connect(ctx context.Context, i *instance) <-chan struct{} {
	if !i.can("connect") {
		return nil
	}
	done := make(chan struct{})
	k.s.tasks.Go(func() { // ends with ctx, which watch cancels
		defer close(done)
		err := i.wire.connect(ctx)
		k.log.Debug("the plugin's channel to the host ended", "reason", err)
	})
	return done
}

// drain lets the plugin finish its calls. A plugin that cannot is stopped.
func (k *keeper) drain(ctx context.Context, i *instance) {
	if !i.can("drain") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	if err := i.wire.drain(ctx); err != nil {
		k.log.Debug("the plugin did not finish what it did", "error", err)
	}
}

// idle retires a process that has had no call for long enough, and returns
// when to look again.
func (k *keeper) idle(i *instance) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	rest := k.plugin.IdleTimeout - time.Since(i.heard)
	switch {
	case k.plugin.Eager || i.calls > 0:
		return k.plugin.IdleTimeout
	case rest > 0:
		return rest
	}
	k.retire(i)
	return k.plugin.IdleTimeout
}
