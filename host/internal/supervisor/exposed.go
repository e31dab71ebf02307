package supervisor

import (
	"context"
	"time"
)

// exposed retires a process that has become able to change what it must not, since
// somebody has replaced that: the next process is kept from it again. It reports
// whether it did. It is called with mu held.
func (k *keeper) exposed(i *instance) bool {
	now := time.Now()
	if i.stopping || now.Sub(i.looked) < k.s.timing.look {
		return false
	}
	i.looked = now
	path := i.runner.proc.Exposed()
	if path == "" {
		return false
	}
	k.log.Warn("the plugin's process is replaced: somebody has replaced or made what it must not change, which it now could", "path", path)
	i.patience = k.s.timing.drain
	k.retire(i)
	return true
}

// patrol is exposed for a process that may have no calls.
func (k *keeper) patrol(ctx context.Context, i *instance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, n := k.oldest(i.key.scope); k.exposed(i) && n < maxGenerations && k.plugin.Eager && k.mayStart() == nil {
		k.begin(ctx, i.key.scope)
	}
}
