package lines

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// Gone reports whether w has no reader: the reader of a pipe has closed it, or the peer of
// a socket has closed both sides. It does not block. It returns false if w is neither a
// file nor a socket.
func Gone(w io.Writer) bool {
	conn, ok := w.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return !errors.Is(err, errors.ErrUnsupported) // it is closed
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(fds, 0)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll(fds, 0)
		}
		gone = err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
	return gone || err != nil
}
