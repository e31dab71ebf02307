package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watched are the system calls that can be made to fail, which read and change files, with the
// index of the argument that is the descriptor of the file or its directory.
var watched = map[int32]string{
	unix.SYS_READ: "read", unix.SYS_PREAD64: "pread", unix.SYS_GETDENTS64: "getdents", unix.SYS_OPENAT: "open",
	unix.SYS_WRITE: "write", unix.SYS_PWRITE64: "pwrite", unix.SYS_SENDFILE: "sendfile", unix.SYS_COPY_FILE_RANGE: "copy_file_range",
	unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync", unix.SYS_SYNCFS: "syncfs", unix.SYS_FTRUNCATE: "ftruncate",
	unix.SYS_FCHMOD: "fchmod", unix.SYS_FCHOWN: "fchown", unix.SYS_MKDIRAT: "mkdir", unix.SYS_UNLINKAT: "unlink",
	unix.SYS_RENAMEAT: "rename", unix.SYS_RENAMEAT2: "rename", unix.SYS_LINKAT: "link", unix.SYS_SYMLINKAT: "symlink",
}

// directoryArgument is where a call has the descriptor, if not first.
var directoryArgument = map[int32]int{unix.SYS_SYMLINKAT: 1, unix.SYS_COPY_FILE_RANGE: 2}

// submit lets the parent decide about each watched system call of this process
// from now on, but those on its standard input and output. It returns the
// descriptor by which the parent does.
func submit() (listener int, err error) {
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	ask := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF}
	load := func(offset uintptr) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: uint32(offset)}
	}
	var data seccompData
	filter := []unix.SockFilter{load(unsafe.Offsetof(data.nr))}
	for nr := range watched {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(nr), Jf: 4},
			load(unsafe.Offsetof(data.args)), // its lower half: the machine is little-endian
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: 2, Jt: 1},
			allow, ask)
	}
	filter = append(filter, allow)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// seccompData, notification and response are those of seccomp_unotify(2).
type (
	seccompData struct {
		nr   int32
		arch uint32
		ip   uint64
		args [6]uint64
	}
	notification struct {
		id    uint64
		pid   uint32
		flags uint32
		data  seccompData
	}
	response struct {
		id    uint64
		val   int64
		error int32
		flags uint32
	}
)

// injector decides about the system calls of another process.
type injector struct {
	listener int
	dirs     []string
	ended    chan struct{} // closed when the process is gone

	mu sync.Mutex // guards what follows
	// at is which of the calls below dirs fails, counted from 1; 0 means none.
	// lasting makes all later ones fail, too.
	at      int
	lasting bool
	errno   unix.Errno
	count   int
	failed  []string // by name
	err     error
}

// inject takes over the listener of a process that has called submit.
func inject(process, listener int, dirs []string) (*injector, error) {
	pidfd, err := unix.PidfdOpen(process, 0)
	if err != nil {
		return nil, fmt.Errorf("pidfd_open: %w", err)
	}
	defer unix.Close(pidfd)
	own, err := unix.PidfdGetfd(pidfd, listener, 0)
	if err != nil {
		return nil, fmt.Errorf("pidfd_getfd: %w", err)
	}
	in := &injector{listener: own, dirs: dirs, ended: make(chan struct{})}
	go in.serve() // until the process is gone; wait waits for it
	return in, nil
}

// arm says which call fails from now on.
func (in *injector) arm(at int, lasting bool, errno unix.Errno) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.at, in.lasting, in.errno = at, lasting, errno
	in.count, in.failed = 0, nil
}

// disarm lets everything pass, and returns which calls failed.
func (in *injector) disarm() (failed []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.at = 0
	return slices.Clone(in.failed)
}

// wait waits until the process is gone, and returns errors of the injector.
func (in *injector) wait() error {
	<-in.ended
	return in.err
}

func (in *injector) serve() {
	defer close(in.ended)
	defer unix.Close(in.listener)
	for {
		ready := []unix.PollFd{{Fd: int32(in.listener), Events: unix.POLLIN}}
		_, err := unix.Poll(ready, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || ready[0].Revents&unix.POLLIN == 0 {
			in.err = err
			return
		}
		var asked notification
		if err := ioctl(in.listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&asked)); err != nil {
			continue // it was killed while it asked
		}
		answer := response{id: asked.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if errno := in.decide(asked); errno != 0 {
			answer = response{id: asked.id, error: -int32(errno)}
		}
		// It may have been killed in the meantime.
		_ = ioctl(in.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))
	}
}

// decide returns the error that a call ends with, 0 if it is let through.
func (in *injector) decide(asked notification) unix.Errno {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.at == 0 {
		return 0
	}
	fd := int32(asked.data.args[directoryArgument[asked.data.nr]])
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", asked.pid, fd))
	if err != nil || !slices.ContainsFunc(in.dirs, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }) {
		return 0
	}
	in.count++
	if in.count != in.at && (!in.lasting || in.count < in.at) {
		return 0
	}
	in.failed = append(in.failed, watched[asked.data.nr])
	return in.errno
}

func ioctl(fd int, request uintptr, data unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(data)); errno != 0 {
		return errno
	}
	return nil
}
