package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/proctree"
)

// Reprotect keeps the program from changing what has been put in the place of protected
// files, so that it need not be replaced: it mounts the new ones read-only where the
// program sees them. It returns which of the paths the program can still change.
//
// Only what a preset protects by its name is mounted again, as git replaces
// .git/config with each change. What the program did with the new file before the mount
// it has done: it may have written it, or hold a descriptor by which it can. So a file
// that others rely on once a person has looked at it, such as the configuration, takes
// a new process.
func (p *Process) Reprotect(ctx context.Context, exposed []string) (still []string) {
	for _, path := range exposed {
		file, err := p.reprotectAgain(ctx, path)
		if err != nil {
			still = append(still, path)
			continue
		}
		p.placed(path, file)
	}
	return still
}

// reprotectAgain calls reprotect until it succeeds, for a second at most, and ends with
// ctx. No call begins meanwhile. It tries again only what may succeed then: nothing
// announces the end of a rename.
func (p *Process) reprotectAgain(ctx context.Context, path string) (FileID, error) {
	const attempts, pause = 100, 10 * time.Millisecond
	for n := 1; ; n++ {
		file, err := p.reprotect(path)
		if err == nil || n == attempts || !replacedMeanwhile(err) {
			return file, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return FileID{}, context.Cause(ctx)
		}
	}
}

// replacedMeanwhile reports whether a file was not mounted since it was replaced at that
// moment. Then another file has the name, or the one that had it is about to lose it and
// has lost its mount.
func replacedMeanwhile(err error) bool {
	return errors.Is(err, unix.ESTALE) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL)
}

// placed notes which file is protected at a path.
func (p *Process) placed(path string, file FileID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.places {
		if p.places[i].path == path {
			p.places[i].file = file
		}
	}
}

var errNotByName = errors.New("no preset protects it by its name")

// reprotect mounts what is at a path now read-only, and returns what that is. Where
// nothing is any more, there is nothing to mount, for a new process neither.
func (p *Process) reprotect(path string) (FileID, error) {
	i := slices.IndexFunc(p.places, func(pl place) bool { return pl.path == path })
	if i < 0 || p.places[i].below == "" {
		return FileID{}, errNotByName
	}
	file := Identify(path)
	if file == (FileID{}) {
		return file, nil
	}
	for dir := filepath.Dir(path); dir != p.places[i].below; dir = filepath.Dir(dir) {
		if !p.mounted(dir) { // it could be renamed away
			return FileID{}, fmt.Errorf("%s is not held any more", dir)
		}
	}
	return file, p.mountReadOnly(path, file)
}

// mounted reports whether something is mounted on a path where the program sees it.
func (p *Process) mounted(path string) bool {
	attributes, err := p.attributes(path)
	return err == nil && attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// mountReadOnly mounts a file on itself in the program's namespaces.
func (p *Process) mountReadOnly(path string, file FileID) error {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	m := &remount{namespaces: unix.CLONE_NEWNS, path: name, file: file, everySignal: ^uint64(0)}
	if p.ownUsers {
		m.namespaces |= unix.CLONE_NEWUSER
	}
	m.how = unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS}
	m.attr = unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC}
	process, err := p.open()
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(process) }() // nothing is buffered
	m.process = uintptr(process)

	var status unix.WaitStatus
	proctree.OnOwnThread(func() { // to the first one the kernel gives orphans
		pid, errno := m.fork()
		if errno != 0 {
			err = os.NewSyscallError("clone", errno)
			return
		}
		for {
			if _, err = unix.Wait4(int(pid), &status, unix.WALL, nil); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	})
	switch {
	case err != nil:
		return err
	case !status.Exited():
		return fmt.Errorf("the process that mounts it ended by %v", status.Signal())
	case status.ExitStatus() != 0:
		return fmt.Errorf("mount %s: %w", path, syscall.Errno(status.ExitStatus()))
	}
	return nil
}

// open returns a descriptor of the program's process.
func (p *Process) open() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return -1, os.ErrProcessDone
	}
	return unix.PidfdOpen(p.pid, 0)
}

// remount is what a forked process needs to mount a file on itself. All of it is made
// before: the child of a program with several threads must not allocate.
type remount struct {
	process    uintptr // its descriptor
	namespaces uintptr
	path       *byte
	file       FileID // what must be there
	how        unix.OpenHow
	attr       unix.MountAttr
	stat       unix.Statx_t
	nothing    byte // the empty path

	everySignal, oldSignals uint64
}

// fork returns in the parent only; the child exits with the number of the error, 0 if
// there was none. The kernel lets no process with several threads into a namespace of
// users, so that this cannot be done by a thread of the host. After the fork it calls
// raw system calls and nothing else: a function that grew the stack, allocated, or was
// looked at by the race detector might wait for a lock of a thread that the child has
// not.
//
//go:norace
//go:noinline
func (m *remount) fork() (pid uintptr, errno syscall.Errno) {
	const sizeOfSignals = 8
	var fd, tree, kind uintptr
	empty := uintptr(unsafe.Pointer(&m.nothing)) //nolint:gosec // as the calls take it
	// No signal handler of Go must run in the child.
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&m.everySignal)), uintptr(unsafe.Pointer(&m.oldSignals)), sizeOfSignals, 0, 0) //nolint:gosec // as the call takes it
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
			uintptr(unsafe.Pointer(&m.oldSignals)), 0, sizeOfSignals, 0, 0) //nolint:gosec // as the call takes it
		return pid, errno
	}

	if _, _, errno = syscall.RawSyscall(unix.SYS_SETNS, m.process, m.namespaces, 0); errno != 0 {
		goto exit
	}
	fd, _, errno = syscall.RawSyscall6(unix.SYS_OPENAT2, ^uintptr(0), uintptr(unsafe.Pointer(m.path)), //nolint:gosec // as the call takes it
		uintptr(unsafe.Pointer(&m.how)), unsafe.Sizeof(m.how), 0, 0) //nolint:gosec // as the call takes it
	if errno != 0 {
		goto exit
	}
	_, _, errno = syscall.RawSyscall6(unix.SYS_STATX, fd, empty, unix.AT_EMPTY_PATH,
		unix.STATX_TYPE|unix.STATX_NLINK|unix.STATX_INO|unix.STATX_BTIME, uintptr(unsafe.Pointer(&m.stat)), 0) //nolint:gosec // as the call takes it
	if errno != 0 {
		goto exit
	}
	kind = uintptr(m.stat.Mode) & unix.S_IFMT
	if m.stat.Ino != m.file.number || m.stat.Dev_major != m.file.major || m.stat.Dev_minor != m.file.minor ||
		m.stat.Btime.Sec != m.file.born.Sec || m.stat.Btime.Nsec != m.file.born.Nsec {
		errno = unix.ESTALE // it has been replaced again
		goto exit
	}
	// One that is being replaced has no name, though the path still leads to it.
	if kind == unix.S_IFREG && m.stat.Nlink == 0 {
		errno = unix.ESTALE
		goto exit
	}
	// A file with another name could be written by that.
	if kind != unix.S_IFDIR && (kind != unix.S_IFREG || m.stat.Nlink != 1) {
		errno = unix.EMLINK
		goto exit
	}
	tree, _, errno = syscall.RawSyscall(unix.SYS_OPEN_TREE, fd, empty,
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if errno != 0 {
		goto exit
	}
	_, _, errno = syscall.RawSyscall6(unix.SYS_MOUNT_SETATTR, tree, empty, unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
		uintptr(unsafe.Pointer(&m.attr)), unsafe.Sizeof(m.attr), 0) //nolint:gosec // as the call takes it
	if errno != 0 {
		goto exit
	}
	_, _, errno = syscall.RawSyscall6(unix.SYS_MOVE_MOUNT, tree, empty, fd, empty,
		unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH, 0)
exit:
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
}
