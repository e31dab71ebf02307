package reaper

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// childInfo is the part of siginfo_t that waitid(2) fills in.
type childInfo struct {
	signo, errno, code int32
	fields             struct {
		_      [0]uintptr // aligned as the pointers of the union are
		pid    int32
		uid    uint32
		status int32
	}
}

// nextEnded waits until a child has ended, and does not reap it.
func nextEnded() (pid int, err error) {
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WALL, nil); err != nil {
		return 0, err
	}
	return int((*childInfo)(unsafe.Pointer(&info)).fields.pid), nil //nolint:gosec // the kernel's own layout
}
