// Package output reads the standard output or error of a process through a
// pipe, and ends when the process has, even if something else still holds the
// pipe open.
package output

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// maxUnread is how much of an output is read after the process has ended. It is the largest pipe
// buffer that an ordinary user can set.
const maxUnread = 1 << 20

// Reader is the reading end of the pipe.
type Reader struct {
	file   *os.File
	unread int // bytes read since the end; used by Read alone
}

// NewReader returns a reader of the pipe's end r, and takes it over.
func NewReader(r *os.File) *Reader { return &Reader{file: r} }

// End makes Read stop after the current content of the pipe, and ends a Read that waits.
func (r *Reader) End() {
	// Fails only for a file that is closed, whose Read fails too.
	_ = r.file.SetReadDeadline(time.Unix(1, 0))
}

// Read implements io.Reader.
func (r *Reader) Read(b []byte) (int, error) {
	n, err := r.file.Read(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	n = r.readUnread(b[:min(len(b), maxUnread-r.unread)])
	r.unread += n
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// readUnread reads the remaining content of the pipe, without waiting. An expired deadline keeps
// os.File from reading.
func (r *Reader) readUnread(b []byte) int {
	n := 0
	conn, err := r.file.SyscallConn()
	if err != nil {
		return 0
	}
	// Its error is that of a closed file: nothing remains to read then.
	_ = conn.Control(func(fd uintptr) {
		n, err = syscall.Read(int(fd), b)
	})
	return max(n, 0)
}

// Close implements io.Closer.
func (r *Reader) Close() error { return r.file.Close() }
