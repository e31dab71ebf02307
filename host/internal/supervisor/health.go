package supervisor

import (
	"context"
	"time"
)

const (
	// missesDegraded probes without an answer stop new calls, missesDead end
	// the process.
	missesDegraded = 2
	missesDead     = 3
)

// probe asks a silent process whether it is well, acts on the answer, and
// returns when to look again.
func (k *keeper) probe(ctx context.Context, i *instance) time.Duration {
	k.mu.Lock()
	rest := k.s.timing.quiet - time.Since(i.heard)
	if i.misses > 0 && rest > 0 {
		k.wellAgain(i)
	}
	k.mu.Unlock()
	if rest > 0 {
		return rest
	}
	ctx, cancel := context.WithTimeout(ctx, k.s.timing.probe)
	defer cancel()
	err := i.wire.healthy(ctx)

	k.mu.Lock()
	defer k.mu.Unlock()
	if i.stopping {
		return k.s.timing.quiet
	}
	if err == nil {
		i.heard = time.Now()
		k.wellAgain(i)
		return k.s.timing.quiet
	}
	i.misses++
	k.log.Warn("plugin does not answer a health check", "misses", i.misses, "error", err)
	switch i.misses {
	case missesDegraded:
		k.enter(Degraded)
	case missesDead:
		i.runner.blame("stopped answering")
		i.runner.dump()
		k.s.tasks.Go(func() { // ends after exitGrace
			if !within(exitGrace, i.runner.exited) {
				i.runner.end("")
			}
		})
	}
	return k.s.timing.again
}

// wellAgain is called with mu held.
func (k *keeper) wellAgain(i *instance) {
	i.misses = 0
	if k.phase == Degraded {
		k.enter(Ready)
	}
}
