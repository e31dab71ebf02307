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

// A look checks whether a process can change protected files. It can if
// such a file was replaced: git replaces .git/config with each change. A look mounts the
// new files read-only in the namespaces of the process, so that its calls, sessions
// and jobs continue. If that is not possible, it retires the process, and the next one
// cannot change the files.
//
// The file system may take long or never answer. A check holds no lock meanwhile, and there is
// at most one check of a process at a time.
type look struct{ done chan struct{} }

// look waits for the result of a look that begins after the call came: a file may have been
// replaced a moment ago. Calls that come during a look share the next one. The caller
// holds mu; look releases it while it waits. The error is for callers.
func (p *pool) look(ctx context.Context, i *instance) error {
	came, ended := time.Now(), false
	for !ended && !i.stopping && i.looked.Before(came) {
		current := p.beginLook(ctx, i)
		p.mu.Unlock()
		var err error
		select {
		case <-current.done:
		case <-i.ended:
			ended = true
		case <-ctx.Done():
			err = contextError(ctx, errors.New("the file system did not answer in time whether the process can change protected files"))
		case <-p.closing:
			err = p.unavailable(0, errClosed, "is stopped: the host is stopping")
		}
		p.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// beginLook begins a look unless one is in progress. The caller holds mu.
func (p *pool) beginLook(ctx context.Context, i *instance) *look {
	if i.looking != nil {
		return i.looking
	}
	current := &look{done: make(chan struct{})}
	i.looking = current
	ctx = context.WithoutCancel(ctx)
	p.s.tasks.Go(func() { // ends when the file system answers; Close waits for a while
		defer close(current.done)
		began := time.Now()
		proc := i.proc.Sandboxed()
		paths := p.s.exposed(proc)
		p.s.suspects.note(suspectsAt(p.plugin.Name, paths)) // before nothing shows it any more
		var still []string
		if len(paths) > 0 {
			still = p.s.reprotect(proc, ctx, paths)
		}
		now := p.s.readOnly(p.workspace)
		moved := p.workspaceMoved(i.workspace)
		p.mu.Lock()
		defer p.mu.Unlock()
		i.looking, i.looked = nil, began
		switch {
		case i.stopping:
		case len(still) > 0:
			p.log.Warn("the plugin restarts: protected files were replaced or created, and its process could change them", "paths", still)
			i.why = "protected files were replaced or created while it ran: " + p.named(still)
			i.patience = p.s.timing.drain
			p.renew(ctx, i)
		case moved:
			p.log.Warn("the plugin restarts: the workspace was removed or replaced", "workspace", p.workspace)
			i.why = "the workspace was removed or replaced"
			i.patience = p.s.timing.drain
			p.renew(ctx, i)
		case now != i.readOnly:
			p.log.Warn("the plugin restarts: the workspace became read-only or writable", "read_only", now)
			i.why = "the workspace became read-only or writable"
			i.patience = p.s.timing.drain
			p.renew(ctx, i)
		case len(paths) > 0:
			p.log.Info("protected files were replaced or created: the plugin's process cannot change the new ones", "paths", paths)
		}
	})
	return current
}

// named lists paths for a caller, without names outside of the workspace.
func (p *pool) named(paths []string) string {
	const most = 3
	var names []string
	for _, path := range paths {
		name, err := filepath.Rel(p.workspace, path)
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

// suspects are files that were put where a process could change them.
type suspects struct {
	mu    sync.Mutex        // guards files
	files map[string]string // the plugins that could change them, by path
}

// suspectsAt returns the files at paths that a plugin could change.
func suspectsAt(plugin string, paths []string) map[string]string {
	found := make(map[string]string, len(paths))
	for _, path := range paths {
		found[path] = plugin
	}
	return found
}

func (s *suspects) note(found map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]string{}
	}
	maps.Copy(s.files, found) // bounded by the protected files
}

// Suspects returns the protected files that a plugin could change after they had
// replaced other files, each with the plugin's name: the plugin may have written them.
// It checks every process again. A file that was put there while no plugin ran is not
// a suspect. One that was stays one until [Supervisor.Trust], also if another file has
// taken its place: whoever wrote that may have begun with what the plugin wrote.
func (s *Supervisor) Suspects() map[string]string {
	for _, m := range s.all() {
		for _, proc := range m.processes() {
			s.suspects.note(suspectsAt(m.plugin.Name, s.exposed(proc)))
		}
	}
	s.suspects.mu.Lock()
	files := maps.Clone(s.suspects.files)
	s.suspects.mu.Unlock()
	return files
}

// processes returns the running processes.
func (m *manager) processes() (all []*sandbox.Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pools() {
		for _, i := range p.instances {
			all = append(all, i.proc.Sandboxed())
		}
	}
	return all
}

// Trust makes files no suspects any more: a person has reviewed them. A process that
// can still change one makes it a suspect again.
func (s *Supervisor) Trust(paths []string) {
	s.suspects.mu.Lock()
	defer s.suspects.mu.Unlock()
	for _, path := range paths {
		delete(s.suspects.files, path)
	}
}

// patrol begins a look at a process, which may have no calls.
func (p *pool) patrol(ctx context.Context, i *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !i.stopping {
		p.beginLook(ctx, i)
	}
}
