package proc

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// OpenTerminal opens both sides of a new pseudo-terminal of the given size. theirs is for
// [Command.Terminal]; ours reads its output and writes its input. Reads fail once theirs is
// closed everywhere. The caller closes both. On systems other than Linux, it fails.
func OpenTerminal(rows, cols int) (ours, theirs *os.File, err error) {
	if rows < 1 || rows > math.MaxUint16 || cols < 1 || cols > math.MaxUint16 {
		return nil, nil, invalid("a terminal of %d rows and %d columns", rows, cols).WithHint("expected 1 to %d", math.MaxUint16)
	}
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	if theirs, err = otherSide(ours, &unix.Winsize{Row: uint16(rows), Col: uint16(cols)}); err != nil {
		_ = ours.Close() // nothing was written
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	return ours, theirs, nil
}

// otherSide unlocks the other side, sets its size and opens it. It need not have a name in
// this process's file system.
func otherSide(ours *os.File, size *unix.Winsize) (*os.File, error) {
	conn, err := ours.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd uintptr
	controlErr := conn.Control(func(master uintptr) {
		if err = unix.IoctlSetPointerInt(int(master), unix.TIOCSPTLCK, 0); err != nil {
			return
		}
		if err = unix.IoctlSetWinsize(int(master), unix.TIOCSWINSZ, size); err != nil {
			return
		}
		var errno syscall.Errno
		if fd, _, errno = unix.Syscall(unix.SYS_IOCTL, master, unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC); errno != 0 {
			err = errno
		}
	})
	if err := errors.Join(controlErr, err); err != nil {
		return nil, err
	}
	return os.NewFile(fd, "terminal"), nil
}
