package roots

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/toolhost/toolhost/sdk/tool"
)

// denied says that name is not below a folder. Nothing tells whether it exists.
func (r *Roots) denied(name string) *tool.Error {
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", tool.VisibleName(name)).
		WithHint("use a path relative to the workspace, or an absolute one below %s", r)
}

// secret says that name is one of those that hold secrets.
func (r *Roots) secret(name string) *tool.Error {
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", tool.VisibleName(name)).
		WithHint("files of this name usually hold secrets; ask the user for what is needed from it")
}

// explain turns what the system says about name into an error for a model.
func (r *Roots) explain(name string, err error) *tool.Error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return tool.Errorf(tool.NotFound, "File not found: %s", tool.VisibleName(name)).WithCause(err)
	case errors.As(err, &errno):
		// The number's own text: that of err names the file in the host's terms.
		return tool.Errorf(tool.Failed, "Failed to read file: %s", errno.Error()).WithCause(err)
	default:
		// Whatever else os.Root reports is a name that leaves the folder.
		return r.denied(name).WithCause(err)
	}
}

// explainDirectory does the same for a directory that should be listed.
func (r *Roots) explainDirectory(name string, err error) error {
	var known *tool.Error
	var errno syscall.Errno
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, syscall.ENOTDIR):
		return tool.Errorf(tool.Failed, "Not a directory: %s", tool.VisibleName(name)).WithCause(err)
	case errors.Is(err, fs.ErrNotExist), !errors.As(err, &errno):
		return r.explain(name, err)
	default:
		return tool.Errorf(tool.Failed, "Failed to read directory: %s", errno.Error()).WithCause(err)
	}
}
