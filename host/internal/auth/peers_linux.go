package auth

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxAncestors bounds how far up a peer's ancestors are followed.
const maxAncestors = 1000

func checkPeer(conn int) error {
	peer, err := unix.GetsockoptUcred(conn, unix.SOL_SOCKET, unix.SO_PEERCRED)
	switch {
	case err != nil:
		return fmt.Errorf("credentials: %w", err)
	case int(peer.Uid) != os.Geteuid():
		return &PeerError{int(peer.Pid), fmt.Sprintf("it runs as uid %d, not as the host's", peer.Uid)}
	case peer.Pid <= 0:
		return &PeerError{0, "it cannot be seen from where the host runs"}
	case int(peer.Pid) == os.Getpid():
		return nil
	}
	if err := adopts(); err != nil {
		return err
	}
	handle, err := openPeer(conn, int(peer.Pid))
	if err != nil {
		return &PeerError{int(peer.Pid), "it has ended"}
	}
	defer unix.Close(handle) //nolint:errcheck // nothing was written
	descends, err := descends(int(peer.Pid), os.Getpid(), openProcess)
	switch {
	case !lives(handle):
		// Its number may have been another process's while it was looked at.
		return &PeerError{int(peer.Pid), "it has ended"}
	case err != nil:
		return &PeerError{int(peer.Pid), err.Error()}
	case descends:
		return &PeerError{int(peer.Pid), "it was started by the host or by a plugin"}
	}
	return nil
}

// adopts checks that orphans among the host's descendants become its children;
// without that a plugin's child could leave the family.
func adopts() error {
	var set int32
	//nolint:gosec // the kernel writes into set, and says how in prctl(2)
	_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&set)), 0)
	if errno != 0 {
		return fmt.Errorf("is the host a subreaper: %w", errno)
	}
	if set == 0 {
		return &PeerError{0, "the host does not adopt orphans, so that nobody can be told from a plugin's child"}
	}
	return nil
}

// openPeer returns a pidfd of the process that opened a connection. It fails
// if that has ended.
func openPeer(conn, pid int) (int, error) {
	handle, err := unix.GetsockoptInt(conn, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if errors.Is(err, unix.ENOPROTOOPT) { // before Linux 6.5
		return unix.PidfdOpen(pid, 0)
	}
	return handle, err
}

// lives reports whether the process of a pidfd has not ended.
func lives(handle int) bool {
	fds := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n == 0
		}
	}
}

// descends reports whether a process is a child of another one, or of one of
// its children, and so on. The other one is a subreaper: so what it is not an
// ancestor of at one time, it is not at any other, and the ancestors need not
// be looked at all at once. open opens a process by its number, which may be
// another's by then.
func descends(pid, ancestor int, open func(pid int) (process, error)) (bool, error) {
	child, err := open(pid)
	if err != nil {
		return false, err
	}
	defer func() { _ = child.Close() }() // nothing was written
	for range maxAncestors {
		number, err := child.parent()
		switch {
		case err != nil:
			return false, err
		case number == ancestor:
			return true, nil
		case number <= 1: // init, or out of sight and so above the host
			return false, nil
		}
		parent, openErr := open(number)
		// A process whose children are still its own has not given up its
		// number: if it is the parent after it was opened, the right one was.
		again, err := child.parent()
		switch {
		case err != nil:
			_ = parent.Close()
			return false, err
		case again != number:
			_ = parent.Close() // orphaned meanwhile: look again
			continue
		case openErr != nil:
			return false, openErr
		}
		_ = child.Close()
		child = parent
	}
	return false, errors.New("its ancestors come to no end")
}

// process is a process's directory in /proc. Once that process has ended,
// nothing can be read there, even if another one has its number by then.
type process struct {
	pid int
	dir *os.File
}

func openProcess(pid int) (process, error) {
	dir, err := os.OpenFile("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return process{pid: pid}, fmt.Errorf("process %d cannot be looked at", pid)
	}
	return process{pid, dir}, nil
}

func (p process) Close() error { return p.dir.Close() }

// parent returns the number of the parent; 0 if it is out of sight.
func (p process) parent() (int, error) {
	fd, err := unix.Openat(int(p.dir.Fd()), "stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("process %d cannot be looked at", p.pid)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	buf := make([]byte, 512)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return 0, fmt.Errorf("process %d cannot be looked at", p.pid)
	}
	return parentIn(buf[:n])
}

// parentIn reads the parent's number from a text as in /proc/PID/stat. The
// program's name in it is between the first parenthesis and the last, and may
// hold anything.
func parentIn(stat []byte) (int, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, errors.New("its ancestors cannot be read")
	}
	number, err := strconv.Atoi(string(fields[1])) // after the state
	if err != nil {
		return 0, errors.New("its ancestors cannot be read")
	}
	return number, nil
}
