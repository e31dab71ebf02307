package sandbox

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// maxUnread bounds what is read of an output after the program's end. It is
// the largest buffer that an ordinary user can give a pipe.
const maxUnread = 1 << 20

// output is the host's end of a program's standard output or error.
type output struct {
	file   *os.File
	unread int // bytes read since the end; used by Read alone
}

// end makes Read stop at what is in the pipe now.
func (o *output) end() {
	// Fails only for a file that is closed, whose Read fails too.
	_ = o.file.SetReadDeadline(time.Unix(1, 0))
}

// Read implements io.Reader.
func (o *output) Read(b []byte) (int, error) {
	n, err := o.file.Read(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	n = o.readUnread(b[:min(len(b), maxUnread-o.unread)])
	o.unread += n
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// readUnread reads what the pipe holds, without waiting. The deadline, once
// passed, keeps os.File from looking.
func (o *output) readUnread(b []byte) int {
	n := 0
	conn, err := o.file.SyscallConn()
	if err != nil {
		return 0
	}
	// Its error is that of a closed file: there is nothing to read then.
	_ = conn.Control(func(fd uintptr) {
		n, err = syscall.Read(int(fd), b)
	})
	return max(n, 0)
}

// Close implements io.Closer.
func (o *output) Close() error { return o.file.Close() }
