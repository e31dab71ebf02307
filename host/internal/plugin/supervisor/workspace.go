package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// errNoWorkspace is the error of a start without a workspace to work in.
var errNoWorkspace = errors.New("the workspace does not exist")

// findWorkspace returns the directory that a process which starts now will see as the workspace, or
// nil if none is configured.
func (s *Supervisor) findWorkspace() (os.FileInfo, error) {
	if s.opts.Workspace == "" {
		return nil, nil
	}
	info, err := os.Stat(s.opts.Workspace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s; make it again, and the next call starts the plugin", errNoWorkspace, s.opts.Workspace)
	}
	return info, err
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
