package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// errNoWorkspace is the error of a start without a workspace to work in.
var errNoWorkspace = errors.New("the workspace does not exist")

// findWorkspace returns the directory that a process which starts now will see as the workspace. It
// returns nil if the process sees none, or if the system does not tell.
func (m *manager) findWorkspace() (os.FileInfo, error) {
	dir, c := m.s.opts.Workspace, &m.plugin.Confinement
	if dir == "" || c.Workspace == sandbox.NoWorkspace && c.Isolation != sandbox.Off {
		return nil, nil
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s; make it again, and the next call starts the plugin", errNoWorkspace, dir)
	}
	return info, nil // of another error, the start tells
}

// workspaceMoved reports whether the workspace is another directory than the one that a process
// sees, or is gone: the process would go on with the old one.
func (s *Supervisor) workspaceMoved(seen os.FileInfo) bool {
	if seen == nil {
		return false
	}
	now, err := os.Stat(s.opts.Workspace)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(seen, now)
}
