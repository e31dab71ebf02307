package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// A look finds out whether a process has become able to change what it must not, since
// somebody has replaced that, as git replaces .git/config with each change. The new files
// are mounted read-only in its namespaces, so that its calls, sessions and jobs go on.
// Where that cannot be done the process is retired, and the next one is kept from the
// files. The file system may take its time, or never answer: nothing is held meanwhile,
// and no more than one look at a process is under way.
type look struct{ done chan struct{} }

// look returns when it is known whether a process is exposed. It is called with mu held
// and returns with mu held; it releases it meanwhile. Its error is for callers.
func (k *keeper) look(ctx context.Context, i *instance) error {
	if i.stopping || time.Since(i.looked) < k.s.timing.look {
		return nil
	}
	under := k.beginLook(ctx, i)
	k.mu.Unlock()
	var err error
	select {
	case <-under.done:
	case <-i.ended:
	case <-ctx.Done():
		err = endedCall(ctx, errors.New("the file system did not say in time whether the process can change what it must not"))
	case <-k.closing:
		err = k.unavailable(0, errClosed, "is stopped: the host is stopping")
	}
	k.mu.Lock()
	return err
}

// beginLook begins a look unless one is under way. It is called with mu held.
func (k *keeper) beginLook(ctx context.Context, i *instance) *look {
	if i.looking != nil {
		return i.looking
	}
	under := &look{done: make(chan struct{})}
	i.looking = under
	ctx = context.WithoutCancel(ctx)
	k.s.tasks.Go(func() { // ends when the file system answers; Close waits, not for ever
		defer close(under.done)
		began := time.Now()
		paths := k.s.exposed(i.runner.proc)
		found := suspectsAt(k.plugin.Name, paths)
		var still []string
		if len(paths) > 0 {
			still = k.s.reprotect(i.runner.proc, ctx, paths)
		}
		now := k.s.readOnly(k.s.opts.Workspace)
		k.mu.Lock()
		defer k.mu.Unlock()
		i.looking, i.looked = nil, began
		k.s.suspects.note(found)
		switch {
		case i.stopping:
		case len(still) > 0:
			k.log.Warn("the plugin is restarted: protected files were replaced or made, and its process could change them", "paths", still)
			i.why = "protected files were replaced or made while it ran: " + k.named(still)
			k.succeed(ctx, i)
		case now != i.readOnly:
			k.log.Warn("the plugin is restarted: the workspace became read-only or writable", "read_only", now)
			i.why = "the workspace became read-only or writable"
			k.succeed(ctx, i)
		case len(paths) > 0:
			k.log.Info("protected files were replaced or made: the plugin's process is kept from changing the new ones", "paths", paths)
		}
	})
	return under
}

// succeed retires a process that another one is to succeed. It is called with mu held.
func (k *keeper) succeed(ctx context.Context, i *instance) {
	_, n := k.oldest(i.key.scope)
	i.patience = k.s.timing.drain
	k.retire(i)
	if n < maxGenerations && k.plugin.Eager && k.mayStart() == nil {
		k.begin(ctx, i.key.scope)
	}
}

// named lists paths for a caller, who is told of none outside of the workspace.
func (k *keeper) named(paths []string) string {
	const most = 3
	var names []string
	for _, path := range paths {
		name, err := filepath.Rel(k.s.opts.Workspace, path)
		if err != nil || !filepath.IsLocal(name) {
			name = "a file outside of the workspace"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
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

// suspectsAt identifies the files at the paths that a plugin could change.
func suspectsAt(plugin string, paths []string) map[string]suspect {
	found := make(map[string]suspect, len(paths))
	for _, path := range paths {
		found[path] = suspect{sandbox.Identify(path), plugin}
	}
	return found
}

func (s *suspects) note(found map[string]suspect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]suspect{}
	}
	maps.Copy(s.files, found) // as many as are protected
}

// Suspects returns the files that a plugin could change since somebody has put them
// where others were, each with the plugin's name: they may hold what that one wrote.
// It looks at every process anew. A file that was put there with no plugin running is
// none.
func (s *Supervisor) Suspects() map[string]string {
	for _, k := range s.all() {
		for _, proc := range k.processes() {
			s.suspects.note(suspectsAt(k.plugin.Name, s.exposed(proc)))
		}
	}
	s.suspects.mu.Lock()
	files := maps.Clone(s.suspects.files)
	s.suspects.mu.Unlock()
	found := map[string]string{}
	for path, suspect := range files {
		if sandbox.Identify(path) == suspect.file {
			found[path] = suspect.plugin
		}
	}
	return found
}

// processes returns those that run.
func (k *keeper) processes() (all []*sandbox.Process) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, i := range k.instances {
		if i.runner.proc != nil {
			all = append(all, i.runner.proc)
		}
	}
	return all
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

// patrol begins a look at a process that may have no calls.
func (k *keeper) patrol(ctx context.Context, i *instance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !i.stopping {
		k.beginLook(ctx, i)
	}
}
