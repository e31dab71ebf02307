package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/forbidden"
)

// errNoWorkspace is the error of a start without a workspace to work in.
var errNoWorkspace = errors.New("the workspace does not exist")

// findWorkspace returns the directory that a process which starts now will see as the workspace,
// and makes it if it is a user's first. It returns nil if the process sees none, or if the system
// does not tell.
func (p *pool) findWorkspace(ctx context.Context) (os.FileInfo, error) {
	c := &p.plugin.Confinement
	if p.workspace == "" || c.Workspace == sandbox.NoWorkspace && c.Isolation != sandbox.Off {
		return nil, nil
	}
	if dirs := &p.s.opts.Workspace; dirs.PerUser() {
		var give func(dir string) error
		if os.Geteuid() == 0 {
			give = func(dir string) error { return sandbox.GiveAway(ctx, dir, p.workspace) }
		}
		if _, err := dirs.Make(p.of.user, give); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoWorkspace, err)
		}
	}
	info, err := os.Stat(p.workspace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s; make it again, and the next call starts the plugin", errNoWorkspace, p.workspace)
	}
	return info, nil // of another error, the start tells
}

// workspaceMoved reports whether the workspace is another directory than the one that a process
// sees, or is gone: the process would go on with the old one.
func (p *pool) workspaceMoved(seen os.FileInfo) bool {
	if seen == nil {
		return false
	}
	now, err := os.Stat(p.workspace)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(seen, now)
}

// forbidden returns the patterns of forbidden paths in the pool's workspace.
func (p *pool) forbidden() []string {
	if !p.s.opts.Workspace.PerUser() {
		return p.plugin.Forbidden
	}
	var patterns []string
	for _, pattern := range p.plugin.Forbidden {
		switch {
		case !forbidden.Relative(pattern):
			patterns = append(patterns, pattern)
		case p.workspace != "":
			pattern = forbidden.In(p.workspace, pattern)
			patterns = append(patterns, pattern)
			if other, differs := forbidden.Elsewhere(pattern, resolved); differs {
				patterns = append(patterns, other)
			}
		}
	}
	return patterns
}

// resolved returns a path without symbolic links, or as it is if it does not exist.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
