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

// untilProbe is how long a process may still be silent; 0 means that it is to
// be asked. One that has spoken is well.
func (k *keeper) untilProbe(i *instance) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	rest := k.s.timing.quiet - time.Since(i.heard)
	if rest > 0 {
		k.wellAgain(i)
	}
	return max(rest, 0)
}

// probe asks a process whether it is well. The answer comes within the time
// that a probe may take.
func (k *keeper) probe(ctx context.Context, i *instance) <-chan error {
	answered := make(chan error, 1)
	k.s.tasks.Go(func() { // ends with the probe's time
		ctx, cancel := context.WithTimeout(ctx, k.s.timing.probe)
		defer cancel()
		answered <- i.wire.healthy(ctx)
	})
	return answered
}

// probed acts on the answer to a probe, nil if the process is well, and
// returns when to look again.
func (k *keeper) probed(i *instance, err error) time.Duration {
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
	k.log.Warn("plugin does not answer a health check", "misses", i.misses, "error", k.s.opts.Redact(cleanLine(err.Error())))
	switch i.misses {
	case missesDegraded:
		k.enterFor(i, Degraded)
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
	if i.misses >= missesDegraded {
		k.enterFor(i, Ready)
	}
	i.misses = 0
}
