package main

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// outlet reads an output that processes may hold open after the wanted part has
// arrived: the output of a session's shell, to which background processes may write
// at any time, or a terminal. It discards data while there is no sink.
type outlet struct {
	from    *os.File
	gone    chan struct{} // closed at the end of the output
	flushed chan struct{}

	mu   sync.Mutex   // guards sink, and is held while it runs
	sink func([]byte) // nil discards data
}

func newOutlet(from *os.File) *outlet {
	return &outlet{from: from, gone: make(chan struct{}), flushed: make(chan struct{})}
}

// to passes data from now on to sink, until flush.
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
		case errors.Is(err, os.ErrDeadlineExceeded): // flush asks for the data that is available now
			_ = o.from.SetReadDeadline(time.Time{}) // cannot fail: a pipe supports deadlines
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

// maxPipe is the maximum capacity of a pipe, unless root has raised it.
const maxPipe = 1 << 20

// drain passes on the data that can be read without waiting, up to maxPipe: a
// process may write endlessly.
func (o *outlet) drain(buffer []byte) {
	conn, err := o.from.SyscallConn()
	if err != nil {
		return
	}
	for left, n := maxPipe, 1; left > 0 && n > 0; left -= n {
		// Read fails only if the file is closed.
		_ = conn.Read(func(fd uintptr) bool {
			if n, err = unix.Read(int(fd), buffer); err != nil {
				n = 0 // usually because nothing is available
			}
			return true
		})
		o.pass(buffer[:n])
	}
}

// flush waits until all data written before has been passed on, and removes the
// sink.
func (o *outlet) flush() {
	_ = o.from.SetReadDeadline(time.Unix(1, 0)) // fails only if the file is closed
	select {
	case <-o.flushed:
	case <-o.gone:
	}
	o.to(nil)
}
