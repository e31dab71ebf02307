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

// maxAncestors bounds how many ancestors of a peer are checked.
const maxAncestors = 1000

func checkPeer(conn int) error {
	peer, err := unix.GetsockoptUcred(conn, unix.SOL_SOCKET, unix.SO_PEERCRED)
	switch {
	case err != nil:
		return fmt.Errorf("credentials: %w", err)
	case int(peer.Uid) != os.Geteuid():
		return &PeerError{int(peer.Pid), fmt.Sprintf("it runs as uid %d, which is not the host's", peer.Uid)}
	case peer.Pid <= 0:
		return &PeerError{0, "the host cannot see it in its PID namespace"}
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
		// Another process may have had its number in the meantime.
		return &PeerError{int(peer.Pid), "it has ended"}
	case err != nil:
		return &PeerError{int(peer.Pid), err.Error()}
	case descends:
		return &PeerError{int(peer.Pid), "it was started by the host or by a plugin"}
	}
	return nil
}

// adopts checks that orphaned descendants of the host become its children. Otherwise a
// plugin's child could evade the check.
func adopts() error {
	var set int32
	//nolint:gosec // the kernel writes to set; see prctl(2)
	_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&set)), 0)
	if errno != 0 {
		return fmt.Errorf("is the host a subreaper: %w", errno)
	}
	if set == 0 {
		return &PeerError{0, "the host does not adopt orphans, so any process may be a plugin's child"}
	}
	return nil
}

// openPeer returns a pidfd for the process that opened a connection. It fails if the process
// has ended.
func openPeer(conn, pid int) (int, error) {
	handle, err := unix.GetsockoptInt(conn, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if errors.Is(err, unix.ENOPROTOOPT) { // before Linux 6.5
		return unix.PidfdOpen(pid, 0)
	}
	return handle, err
}

// lives reports whether the process of a pidfd still runs.
func lives(handle int) bool {
	fds := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n == 0
		}
	}
}

// descends reports whether a process descends from ancestor. ancestor is a subreaper, so a
// process never becomes or stops being its descendant, and descends can check the parents one
// after another. open opens a process by its number, which another process may have by then.
func descends(pid, ancestor int, open func(pid int) (process, error)) (bool, error) {
	child, err := open(pid)
	if err != nil {
		return false, err
	}
	defer func() { _ = child.Close() }() // opened for reading only
	for range maxAncestors {
		number, err := child.parent()
		switch {
		case err != nil:
			return false, err
		case number == ancestor:
			return true, nil
		case number <= 1: // init, or outside the PID namespace and so no descendant of the host
			return false, nil
		}
		parent, openErr := open(number)
		// A process keeps its number while it has children. If it is still the parent after it
		// was opened, it was the right process.
		again, err := child.parent()
		switch {
		case err != nil:
			_ = parent.Close()
			return false, err
		case again != number:
			_ = parent.Close() // the child was orphaned in the meantime: try again
			continue
		case openErr != nil:
			return false, openErr
		}
		_ = child.Close()
		child = parent
	}
	return false, errors.New("it has too many ancestors")
}

// process is the directory of a process in /proc. After the process has ended, nothing in it
// can be read, even if another process has the number.
type process struct {
	pid int
	dir *os.File
}

func openProcess(pid int) (process, error) {
	dir, err := os.OpenFile("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return process{pid: pid}, fmt.Errorf("process %d cannot be examined", pid)
	}
	return process{pid, dir}, nil
}

func (p process) Close() error { return p.dir.Close() }

// parent returns the number of the parent, or 0 if it is outside the PID namespace.
func (p process) parent() (int, error) {
	fd, err := unix.Openat(int(p.dir.Fd()), "stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("process %d cannot be examined", p.pid)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	buf := make([]byte, 512)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return 0, fmt.Errorf("process %d cannot be examined", p.pid)
	}
	return parentIn(buf[:n])
}

// parentIn reads the parent's number from a text like /proc/PID/stat. The program's name is
// between the first and the last parenthesis and may contain anything.
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
