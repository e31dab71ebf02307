package interpreter

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"mvdan.cc/sh/v3/interp"

	"github.com/toolhost/toolhost/sdk/tool"
)

// open opens a file for the shell itself, for example for a redirection. It holds
// the file by a descriptor while it asks, so that exactly the file asked about is
// opened.
func (r *runner) open(ctx context.Context, name string, flags int, mode os.FileMode) (io.ReadWriteCloser, error) {
	h := interp.HandlerCtx(ctx)
	if !filepath.IsAbs(name) {
		name = filepath.Join(h.Dir, name)
	}
	if stream, ok := map[string]any{"/dev/stdin": h.Stdin, "/dev/stdout": h.Stdout, "/dev/stderr": h.Stderr}[name]; ok {
		return again(name, stream)
	}
	write := flags&(os.O_WRONLY|os.O_RDWR|os.O_APPEND|os.O_TRUNC|os.O_CREATE) != 0
	held, err := hold(name, 0)
	if errors.Is(err, unix.ENOENT) && flags&os.O_CREATE != 0 {
		return r.create(&h, name, flags, mode)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer held.Close()
	target, err := os.Readlink(inProc(held))
	if err != nil || !filepath.IsAbs(target) { // for example a pipe of another process
		target = name
	}
	r.asker.mayRun(tool.Execution{Directory: h.Dir, File: target, Write: write})
	file, err := os.OpenFile(inProc(held), flags&^(os.O_CREATE|os.O_EXCL), 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: errors.Unwrap(err)}
	}
	return file, nil
}

// again opens a standard stream of the current part again.
func again(name string, stream any) (io.ReadWriteCloser, error) {
	file, ok := stream.(*os.File)
	if !ok {
		return nil, &os.PathError{Op: "open", Path: name, Err: unix.ENXIO}
	}
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// readDir lists a directory for a glob pattern. It asks as open does.
func (r *runner) readDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	h := interp.HandlerCtx(ctx)
	if !filepath.IsAbs(name) {
		name = filepath.Join(h.Dir, name)
	}
	held, err := hold(name, unix.O_DIRECTORY)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer held.Close()
	target, err := os.Readlink(inProc(held))
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	r.asker.mayRun(tool.Execution{Directory: h.Dir, File: target})
	return os.ReadDir(inProc(held))
}

// create creates a file in the directory it asked about.
func (r *runner) create(h *interp.HandlerContext, name string, flags int, mode os.FileMode) (io.ReadWriteCloser, error) {
	dir, err := hold(filepath.Dir(name), unix.O_DIRECTORY)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer dir.Close()
	target, err := os.Readlink(inProc(dir))
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	r.asker.mayRun(tool.Execution{Directory: h.Dir, File: filepath.Join(target, filepath.Base(name)), Write: true})
	fd, err := unix.Openat(int(dir.Fd()), filepath.Base(name), flags|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(mode.Perm()))
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// hold opens a file with O_PATH, which neither reads nor changes it.
func hold(name string, flags int) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func inProc(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }
