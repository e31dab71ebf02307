package lines

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// ErrGivenUp means that the caller gave up a line before it was written.
var ErrGivenUp = errors.New("the message was given up before it was written")

// Writer writes lines from its own goroutine, so that a caller can give up a line that the
// client does not read. It is safe for concurrent use.
type Writer struct {
	writes chan write
	began  atomic.Pointer[time.Time] // when the write in progress began; nil if there is none
	once   sync.Once
	closed chan struct{}
}

// write is a line, and where to report the result.
type write struct {
	line []byte
	done chan<- error // has room for one
}

// NewWriter returns a writer to out. The caller must Close it. Its goroutine ends with
// Close; a write that waits for the other side lasts until the process ends.
func NewWriter(out io.Writer) *Writer {
	w := &Writer{writes: make(chan write), closed: make(chan struct{})}
	go w.run(out)
	return w
}

func (w *Writer) run(out io.Writer) {
	for {
		select {
		case next := <-w.writes:
			now := time.Now()
			w.began.Store(&now)
			_, err := out.Write(next.line)
			w.began.Store(nil)
			next.done <- err
		case <-w.closed:
			return
		}
	}
}

// Write writes a line and its end. It returns when the line is written, when giveUp is
// closed, with [ErrGivenUp], or when the writer is closed.
func (w *Writer) Write(giveUp <-chan struct{}, line []byte) error {
	done := make(chan error, 1)
	select {
	case w.writes <- write{append(line, '\n'), done}:
	case <-w.closed:
		return io.ErrClosedPipe
	case <-giveUp:
		return ErrGivenUp
	}
	select {
	case err := <-done:
		return err
	case <-w.closed:
		return io.ErrClosedPipe
	case <-giveUp:
		return ErrGivenUp
	}
}

// Unread returns how long the write in progress has waited for the other side; 0 if there is
// none.
func (w *Writer) Unread() time.Duration {
	if began := w.began.Load(); began != nil {
		return time.Since(*began)
	}
	return 0
}

// Close makes further writes fail. It does not wait.
func (w *Writer) Close() { w.once.Do(func() { close(w.closed) }) }

// Closed is closed by Close.
func (w *Writer) Closed() <-chan struct{} { return w.closed }
