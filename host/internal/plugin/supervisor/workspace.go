package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/host/internal/plugin/workspace"
	"github.com/toolhost/toolhost/internal/links"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/forbidden"
)

// workspaceError is the error of a start without a workspace to work in.
type workspaceError struct {
	brief string // a whole clause for callers, without any path of the host
	err   error  // the full explanation for the operator
}

// maxExplanation bounds the text of a workspaceError, in bytes: it may name files with long paths.
const maxExplanation = 1000

func (e *workspaceError) Error() string {
	return display.Printable(e.brief+": "+e.err.Error(), maxExplanation)
}

func (e *workspaceError) Unwrap() error { return e.err }

// findWorkspace returns the directory that a process which starts now will see as the workspace,
// and makes it if it is a user's first. It returns nil if the process sees none, or if the system
// does not tell. The error is a [*workspaceError].
func (p *pool) findWorkspace(ctx context.Context) (os.FileInfo, error) {
	c := &p.plugin.Confinement
	if p.workspace == "" || c.Workspace == sandbox.NoWorkspace && c.Isolation != sandbox.Off {
		return nil, nil
	}
	dirs := &p.s.opts.Workspace
	if dirs.PerUser() {
		switch _, err := dirs.Make(ctx, p.of.user, giveAway(ctx, p.workspace)); {
		case errors.Is(err, workspace.ErrTemplate):
			return nil, &workspaceError{"the template of the workspace was not copied", err}
		case err != nil:
			return nil, &workspaceError{"the workspace was not made", err}
		}
	}
	info, err := os.Stat(p.workspace)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &workspaceError{"the workspace does not exist", fmt.Errorf("%s; make it again, and the next call starts the plugin", p.workspace)}
	case err == nil && dirs.PerUser() && os.Geteuid() == 0 && c.RunAs.Mode != sandbox.RunAsHost && rootOwns(info):
		return nil, &workspaceError{"the workspace belongs to root", fmt.Errorf("%s, and tools run as the owner of a user's workspace: "+
			"give it to another user (chown -R), or move it away, and the next call makes a new one", p.workspace)}
	}
	return info, nil // of another error, the start tells
}

// giveAway returns the function that gives a user's new workspace to its owner, nil for a host that
// is not root. path is what the workspace will be called.
func giveAway(ctx context.Context, path string) func(dir *os.Root) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return func(dir *os.Root) error { return sandbox.GiveAway(ctx, dir, path) }
}

func rootOwns(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0
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
		patterns = append(patterns, forbidden.Spellings(p.workspace, pattern, links.Resolve)...)
	}
	return patterns
}
