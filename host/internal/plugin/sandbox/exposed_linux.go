package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/proctree"
)

// place is a path that a program must not change or must not see, in a directory that it may
// use.
type place struct {
	path string
	file FileID // the zero value: nothing exists there
	// below is the directory in which a preset protects it by its name, so that it can be
	// mounted again; "" if it is protected for another reason.
	below string
}

// FileID identifies a file, even if a later file reuses its inode number. The zero value
// means that no file exists.
type FileID struct {
	major, minor uint32
	number       uint64
	born         unix.StatxTimestamp
}

// places returns the paths that mounts protect or hide.
func (p *plan) places() []place {
	if !p.on[LayerMounts] {
		return nil
	}
	explicit := *p.profile
	explicit.found = nil
	other, masked := explicit.protected(), p.masked()
	var all []place
	for _, path := range masked {
		all = append(all, place{path: path, file: Identify(path)})
	}
	for _, path := range p.guarded() {
		if anyWithin(masked, path) {
			continue // it is hidden
		}
		found := place{path: path, file: Identify(path)}
		if slices.Contains(p.profile.found, path) && !slices.ContainsFunc(other, func(o string) bool { return within(o, path) || within(realPath(o), path) }) {
			found.below = p.profile.Workspace
		}
		all = append(all, found)
	}
	return all
}

// Identify returns the identity of the file at a path, or the zero value if there is none,
// or none that the host can examine.
func Identify(path string) FileID {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &stat); err != nil {
		return FileID{}
	}
	return FileID{stat.Dev_major, stat.Dev_minor, stat.Ino, stat.Btime}
}

// Exposed returns the protected and hidden paths that the program can now change or see:
// the file was replaced, as editors do when they save. A mount stays with the old file.
func (p *Process) Exposed() []string {
	p.mu.Lock()
	places := slices.Clone(p.places)
	p.mu.Unlock()
	var exposed []string
	for _, place := range places {
		if Identify(place.path) != place.file || place.file != (FileID{}) && p.unmounted(place.path) {
			exposed = append(exposed, place.path)
		}
	}
	return exposed
}

// unmounted reports whether the mount on a path is gone in the program's namespace: the
// owner may have moved the file away and back. If the path cannot be examined there,
// unmounted returns false.
func (p *Process) unmounted(path string) bool {
	attributes, err := p.attributes(path)
	return err == nil && attributes&unix.STATX_ATTR_MOUNT_ROOT == 0
}

// ReadOnly reports whether a directory is on a read-only file system or mount.
func ReadOnly(dir string) bool {
	var stat unix.Statfs_t
	return dir != "" && unix.Statfs(dir, &stat) == nil && stat.Flags&unix.ST_RDONLY != 0
}

// attributes returns the kernel's attributes of a path in the program's namespace. It
// returns an error if the path cannot be examined, or the kernel does not report them.
func (p *Process) attributes(path string) (uint64, error) {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, "/proc/"+strconv.Itoa(p.pid)+"/root"+path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO, &stat)
	if err == nil && stat.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		err = errors.ErrUnsupported
	}
	return stat.Attributes, err
}

// Reprotect protects files that have replaced protected ones, so that the process need not
// be replaced: it mounts the new files read-only in the program's namespaces. It returns
// the paths that the program can still change.
//
// Only names that presets protect are mounted again: git replaces .git/config with each
// change. The program may have changed the new file before the mount, or may hold a
// descriptor of it. So a file that others trust after a person has reviewed it, such as the
// configuration, needs a new process.
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

// reprotectAgain calls reprotect until it succeeds, for a second at most, or until ctx ends. No
// call begins during that time. It repeats only errors that may pass: the end of a rename has no
// event.
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

// replacedMeanwhile reports whether a mount failed because the file was replaced at that
// moment.
func replacedMeanwhile(err error) bool {
	return errors.Is(err, unix.ESTALE) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL)
}

// placed records the file that is protected at a path.
func (p *Process) placed(path string, file FileID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.places {
		if p.places[i].path == path {
			p.places[i].file = file
		}
	}
}

var errNotByName = errors.New("no preset protects its name")

// reprotect mounts the present file at a path read-only, and returns its identity. If no
// file exists, there is nothing to mount, and a new process would mount nothing either.
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
			return FileID{}, fmt.Errorf("%s is no longer mounted", dir)
		}
	}
	return file, p.mountReadOnly(path, file)
}

// mounted reports whether a path is a mount in the program's namespace.
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
	proctree.OnOwnThread(func() { // the kernel gives orphans to the first thread
		syscall.ForkLock.Lock() // as Go's own forks do, since the child inherits all descriptors
		pid, errno := m.fork()
		syscall.ForkLock.Unlock()
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

// open returns a pidfd of the program's process.
func (p *Process) open() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return -1, os.ErrProcessDone
	}
	return unix.PidfdOpen(p.pid, 0)
}

// remount holds everything that a forked process needs to mount a file on itself. It is prepared
// before the fork: the child of a program with several threads must not allocate.
type remount struct {
	process    uintptr // the program's pidfd
	namespaces uintptr
	path       *byte
	file       FileID // the expected file
	how        unix.OpenHow
	attr       unix.MountAttr
	stat       unix.Statx_t
	nothing    byte // the empty path

	everySignal, oldSignals uint64
}

// fork returns in the parent only; the child exits with the error number, or 0. A thread of
// the host cannot do its work: the kernel lets no process with several threads enter a user
// namespace. After the fork, the child makes only raw system calls. Growing the stack,
// allocating, or the race detector could wait for a lock of a thread that the child does
// not have.
//
//go:norace
//go:noinline
func (m *remount) fork() (pid uintptr, errno syscall.Errno) {
	const sizeOfSignals = 8
	var fd, tree, kind uintptr
	empty := uintptr(unsafe.Pointer(&m.nothing)) //nolint:gosec // an argument of system calls
	// No signal handler of Go may run in the child.
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&m.everySignal)), uintptr(unsafe.Pointer(&m.oldSignals)), sizeOfSignals, 0, 0) //nolint:gosec // an argument of the system call
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
			uintptr(unsafe.Pointer(&m.oldSignals)), 0, sizeOfSignals, 0, 0) //nolint:gosec // an argument of the system call
		return pid, errno
	}

	if _, _, errno = syscall.RawSyscall(unix.SYS_SETNS, m.process, m.namespaces, 0); errno != 0 {
		goto exit
	}
	fd, _, errno = syscall.RawSyscall6(unix.SYS_OPENAT2, ^uintptr(0), uintptr(unsafe.Pointer(m.path)), //nolint:gosec // an argument of the system call
		uintptr(unsafe.Pointer(&m.how)), unsafe.Sizeof(m.how), 0, 0) //nolint:gosec // an argument of the system call
	if errno != 0 {
		goto exit
	}
	_, _, errno = syscall.RawSyscall6(unix.SYS_STATX, fd, empty, unix.AT_EMPTY_PATH,
		unix.STATX_TYPE|unix.STATX_NLINK|unix.STATX_INO|unix.STATX_BTIME, uintptr(unsafe.Pointer(&m.stat)), 0) //nolint:gosec // an argument of the system call
	if errno != 0 {
		goto exit
	}
	kind = uintptr(m.stat.Mode) & unix.S_IFMT
	if m.stat.Ino != m.file.number || m.stat.Dev_major != m.file.major || m.stat.Dev_minor != m.file.minor ||
		m.stat.Btime.Sec != m.file.born.Sec || m.stat.Btime.Nsec != m.file.born.Nsec {
		errno = unix.ESTALE // it has been replaced again
		goto exit
	}
	// A file that is being replaced has no links, although the path still leads to it.
	if kind == unix.S_IFREG && m.stat.Nlink == 0 {
		errno = unix.ESTALE
		goto exit
	}
	// A file with another hard link could be written through that.
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
		uintptr(unsafe.Pointer(&m.attr)), unsafe.Sizeof(m.attr), 0) //nolint:gosec // an argument of the system call
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
