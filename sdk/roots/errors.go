package roots

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/toolhost/toolhost/sdk/tool"
)

// denied returns the error for a name outside the folders. It does not reveal whether the file
// exists.
func (r *Roots) denied(name string) *tool.Error {
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", tool.VisibleName(name)).
		WithHint("use a path relative to the workspace")
}

// secret returns the error for a name that usually holds secrets.
func (r *Roots) secret(name string) *tool.Error {
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", tool.VisibleName(name)).
		WithHint("files of this name usually hold secrets; ask the user for the part that you need")
}

// forbiddenPath returns the error for a name that no call may use.
func (r *Roots) forbiddenPath(name string) *tool.Error {
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", tool.VisibleName(name)).
		WithHint("the administrator has forbidden it to all calls; continue without it")
}

// protected returns the error for a place that must not be changed.
func (r *Roots) protected(at place) *tool.Error {
	return tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", tool.VisibleName(at.String())).
		WithHint("it is protected from changes; leave it as it is, or ask the user to change it")
}

// explain converts a system error about name for a model.
func (r *Roots) explain(name string, err error) *tool.Error {
	return r.explainAs("Failed to read file", name, err)
}

// explainWrite is like explain, for a write.
func (r *Roots) explainWrite(name string, err error) *tool.Error {
	if errors.Is(err, syscall.ENOTDIR) {
		return tool.Errorf(tool.Failed, "Failed to write file: %s", syscall.ENOTDIR.Error()).WithCause(err)
	}
	return r.explainAs("Failed to write file", name, err)
}

func (r *Roots) explainAs(what, name string, err error) *tool.Error {
	var known *tool.Error
	var errno syscall.Errno
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, syscall.ELOOP):
		return tool.Errorf(tool.Failed, "%s: too many symbolic links", what).WithCause(err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return tool.Errorf(tool.NotFound, "File not found: %s", tool.VisibleName(name)).
			WithHint("list the directory that it should be in; paths are relative to the workspace").WithCause(err)
	case errors.As(err, &errno):
		// Use the text of the number: err's own text contains the host's path.
		return tool.Errorf(tool.Failed, "%s: %s", what, errno.Error()).
			WithHint("%s", advice(errno, tool.VisibleName(name))).WithCause(err)
	default:
		// Any other error of os.Root means that the name leads outside the folder.
		return r.denied(name).WithCause(err)
	}
}

// advice returns what to do about a system error, or "".
func advice(errno syscall.Errno, name string) string {
	switch errno { //nolint:exhaustive // the others are described by their own text
	case syscall.EACCES, syscall.EPERM:
		return "the permissions of " + name + ", or of the directory that it is in, do not allow it; ask the user to change them"
	case syscall.EROFS:
		return name + " is on a file system that is mounted read-only; write elsewhere, or ask the user"
	case syscall.ENOSPC, syscall.EDQUOT:
		return "the disk is full; ask the user to make room"
	case syscall.EIO:
		return "the disk reports errors; tell the user"
	case syscall.ENAMETOOLONG:
		return "the name is too long; choose a shorter one"
	default:
		return ""
	}
}

// explainDirectory is explain for a directory that is listed.
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
