package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// logQueue bounds the lines that wait for a reader of the log. Further lines are dropped
	// and counted.
	logQueue = 1024
	// logPatience is how long a stopping host waits until the last lines are read.
	logPatience = time.Second
)

// logWriter writes lines from its own goroutine, so that a log without a reader never blocks
// the host.
type logWriter struct {
	lines chan []byte
	ended chan struct{} // closed when everything is written

	mu      sync.Mutex // guards the fields below
	closed  bool
	dropped int
}

// newLogWriter returns a writer for w. The caller must close it.
func newLogWriter(w io.Writer) *logWriter {
	l := &logWriter{lines: make(chan []byte, logQueue), ended: make(chan struct{})}
	go l.pass(w) // ends with Close, or with the process if a write blocks
	return l
}

// Write implements [io.Writer]. It takes one line and does not block.
func (l *logWriter) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, io.ErrClosedPipe
	}
	select {
	case l.lines <- append([]byte(nil), line...):
	default:
		l.dropped++
	}
	return len(line), nil
}

// pass writes the lines and the number of dropped ones.
func (l *logWriter) pass(w io.Writer) {
	defer close(l.ended)
	for line := range l.lines {
		if n := l.takeDropped(); n > 0 {
			_, _ = fmt.Fprintf(w, "toolhost: %d log lines were dropped because nothing read them\n", n)
		}
		_, _ = w.Write(line) // there is no other log
	}
}

func (l *logWriter) takeDropped() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.dropped
	l.dropped = 0
	return n
}

// Close waits briefly until the queued lines are written.
func (l *logWriter) Close() {
	l.mu.Lock()
	l.closed = true
	close(l.lines)
	l.mu.Unlock()
	timer := time.NewTimer(logPatience)
	defer timer.Stop()
	select {
	case <-l.ended:
	case <-timer.C:
	}
}
