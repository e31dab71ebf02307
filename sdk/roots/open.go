package roots

import (
	"io/fs"
	"os"
	"path"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Open opens a regular file for reading. It follows symbolic links within the folders. It
// refuses directories, FIFOs, sockets and devices without blocking, and hard links to secrets.
// The caller closes the file.
func (r *Roots) Open(name string) (*os.File, error) {
	at, err := r.resolve(name, true)
	if err != nil {
		return nil, err
	}
	return r.openRegular(at, name)
}

// openRegular opens a place; errors call it name.
func (r *Roots) openRegular(at place, name string) (*os.File, error) {
	// Opening a device can have effects, so check first. The file can change until then, so
	// check again.
	info, err := at.root.Lstat(at.rel)
	if err != nil {
		return nil, r.explain(name, err)
	}
	if err := regular(info); err != nil {
		return nil, err
	}
	// A link that appeared after the name was resolved is not followed: it could lead to a
	// secret.
	dir, err := r.openDirectory(place{at.folder, path.Dir(at.rel)}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // opened for reading only
	fd, _, err := dir.open(path.Base(at.rel), name)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), at.abs()), nil
}

// regular refuses files that are not regular.
func regular(info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return notRegular(info.Mode())
}

func notRegular(mode fs.FileMode) error {
	err := tool.Errorf(tool.Failed, "Failed to read file: it is a %s, not a regular file", Kind(mode))
	if mode.IsDir() {
		return err.WithHint("list the directory, or name a file in it")
	}
	return err
}

// Kind returns the name of the kind of file in mode: "file", "directory", "symlink",
// "FIFO", "socket" or "device".
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "symlink"
	case mode&fs.ModeNamedPipe != 0:
		return "FIFO"
	case mode&fs.ModeSocket != 0:
		return "socket"
	default:
		return "device"
	}
}

// Stat describes a file. It follows symbolic links within the folders.
func (r *Roots) Stat(name string) (fs.FileInfo, error) {
	at, err := r.resolve(name, true)
	if err != nil {
		return nil, err
	}
	info, err := at.root.Lstat(at.rel)
	if err != nil {
		return nil, r.explain(name, err)
	}
	return info, nil
}

// Lstat describes a file without following a symbolic link at the end of the name. For
// a link, it returns the target, which may be outside the folders.
func (r *Roots) Lstat(name string) (info fs.FileInfo, target string, err error) {
	at, err := r.resolve(name, false)
	if err != nil {
		return nil, "", err
	}
	info, err = at.root.Lstat(at.rel)
	if err != nil {
		return nil, "", r.explain(name, err)
	}
	if info.Mode().Type() != fs.ModeSymlink {
		return info, "", nil
	}
	target, err = at.root.Readlink(at.rel)
	if err != nil {
		return nil, "", r.explain(name, err)
	}
	return info, target, nil
}
