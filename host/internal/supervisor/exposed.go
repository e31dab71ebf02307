package supervisor

import (
	"context"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/sandbox"
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
	paths := i.runner.proc.Exposed()
	if len(paths) == 0 {
		return false
	}
	k.s.suspects.note(k.plugin.Name, paths)
	k.log.Warn("the plugin's process is replaced: somebody has replaced or made what it must not change, which it now could", "paths", paths)
	i.patience = k.s.timing.drain
	k.retire(i)
	return true
}

// suspects are files that somebody has put where a process could then change them.
type suspects struct {
	mu    sync.Mutex
	files map[string]suspect // by path
}

type suspect struct {
	file   sandbox.FileID
	plugin string
}

func (s *suspects) note(plugin string, paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]suspect{}
	}
	for _, path := range paths { // as many as are protected
		s.files[path] = suspect{sandbox.Identify(path), plugin}
	}
}

// Suspects returns the files that a plugin could change since somebody has put them
// where others were, each with the plugin's name: they may hold what that one wrote.
// It looks at every process anew. A file that was put there with no plugin running is
// none.
func (s *Supervisor) Suspects() map[string]string {
	for _, k := range s.all() {
		k.mu.Lock()
		for _, i := range k.instances {
			if proc := i.runner.proc; proc != nil {
				s.suspects.note(k.plugin.Name, proc.Exposed())
			}
		}
		k.mu.Unlock()
	}
	s.suspects.mu.Lock()
	defer s.suspects.mu.Unlock()
	found := map[string]string{}
	for path, suspect := range s.suspects.files {
		if sandbox.Identify(path) == suspect.file {
			found[path] = suspect.plugin
		}
	}
	return found
}

// Trust forgets that files were suspects: somebody has looked at them. A process that
// can still change one makes it a suspect again.
func (s *Supervisor) Trust(paths []string) {
	s.suspects.mu.Lock()
	defer s.suspects.mu.Unlock()
	for _, path := range paths {
		delete(s.suspects.files, path)
	}
}

// patrol is exposed for a process that may have no calls.
func (k *keeper) patrol(ctx context.Context, i *instance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, n := k.oldest(i.key.scope); k.exposed(i) && n < maxGenerations && k.plugin.Eager && k.mayStart() == nil {
		k.begin(ctx, i.key.scope)
	}
}
