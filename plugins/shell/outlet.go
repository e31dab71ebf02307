package main

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// outlet reads an output that processes may hold when what is wanted of it has
// come: that of a living shell, which its background may write to at any time, or
// a terminal. What comes while it is nobody's is dropped.
type outlet struct {
	from    *os.File
	gone    chan struct{} // closed when there is nothing more to read
	flushed chan struct{}

	mu   sync.Mutex   // guards sink, and is held while it runs
	sink func([]byte) // nil: nobody's
}

func newOutlet(from *os.File) *outlet {
	return &outlet{from: from, gone: make(chan struct{}), flushed: make(chan struct{})}
}

// to gives what comes from now on to a function, until flush.
func (o *outlet) to(sink func([]byte)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sink = sink
}

func (o *outlet) read() {
	defer o.from.Close()
	defer close(o.gone)
	for buffer := make([]byte, 64<<10); ; {
		n, err := o.from.Read(buffer)
		o.pass(buffer[:n])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded): // flush wants what is there by now
			_ = o.from.SetReadDeadline(time.Time{}) // a pipe has deadlines
			o.drain(buffer)
			o.flushed <- struct{}{}
		case err != nil:
			return
		}
	}
}

func (o *outlet) pass(data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sink != nil && len(data) > 0 {
		o.sink(data)
	}
}

// maxPipe is how much a pipe holds at most, unless root has changed that.
const maxPipe = 1 << 20

// drain passes on what can be read at once: something may write on and on.
func (o *outlet) drain(buffer []byte) {
	conn, err := o.from.SyscallConn()
	if err != nil {
		return
	}
	for left, n := maxPipe, 1; left > 0 && n > 0; left -= n {
		// It fails for a closed file.
		_ = conn.Read(func(fd uintptr) bool {
			if n, err = unix.Read(int(fd), buffer); err != nil {
				n = 0 // most often: nothing is there now
			}
			return true
		})
		o.pass(buffer[:n])
	}
}

// flush returns when all that was written before has been passed on, and ends
// that.
func (o *outlet) flush() {
	_ = o.from.SetReadDeadline(time.Unix(1, 0)) // it fails for a closed file
	select {
	case <-o.flushed:
	case <-o.gone:
	}
	o.to(nil)
}
