package main

import (
	"bytes"
	"context"
	"regexp"
	"sync"
)

// log keeps the end of a job's output.
type log struct {
	mu      sync.Mutex // guards everything below
	keep    int
	data    []byte // the last bytes; a ring buffer once it has keep bytes
	next    int    // where the ring buffer continues
	total   int64  // bytes written so far
	over    bool
	changed chan struct{} // closed and replaced at each write and at the end
}

func newLog(keep int) *log { return &log{keep: keep, changed: make(chan struct{})} }

func (l *log) write(data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total += int64(len(data))
	if len(data) > l.keep {
		data = data[len(data)-l.keep:]
	}
	first := min(len(data), l.keep-len(l.data))
	if need := len(l.data) + first; need > cap(l.data) {
		l.data = append(make([]byte, 0, min(max(need, 2*cap(l.data)), l.keep)), l.data...)
	}
	l.data = append(l.data, data[:first]...)
	for data = data[first:]; len(data) > 0; {
		n := copy(l.data[l.next:], data)
		l.next = (l.next + n) % l.keep
		data = data[n:]
	}
	l.tell()
}

// end records that nothing more will be written.
func (l *log) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.tell()
}

// tell wakes the waiting readers. l.mu is held.
func (l *log) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// page is a part of a log.
type page struct {
	data  []byte
	from  int64 // its position in the log
	total int64 // bytes written so far
	over  bool  // nothing more will be written
	// changed is closed when the log changes.
	changed <-chan struct{}
}

// read returns at most most bytes of the log from a position on, or from the oldest
// byte kept if that position is gone. A negative position counts from the end.
func (l *log) read(from int64, most int) page {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.total - int64(len(l.data))
	if from < 0 {
		from += l.total
	}
	from = min(max(from, kept), l.total)
	at := int(from - kept) // index in the kept bytes
	n := min(most, len(l.data)-at)
	data := make([]byte, 0, n)
	for len(data) < n {
		begin := (l.next + at + len(data)) % len(l.data)
		data = append(data, l.data[begin:min(begin+n-len(data), len(l.data))]...)
	}
	return page{data: data, from: from, total: l.total, over: l.over, changed: l.changed}
}

// oldest returns the position of the oldest byte that is kept.
func (l *log) oldest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total - int64(len(l.data))
}

// findPart is how much of a log find reads at once, and so the longest line that it finds for sure.
const findPart = 64 << 10

// find waits until a line from a position on matches, as far as it is written, and returns the
// position after the match. It returns false if the log ends before, or ctx does.
func (l *log) find(ctx context.Context, from int64, pattern *regexp.Regexp) (end int64, found bool) {
	for {
		read := l.read(from, findPart)
		if at := pattern.FindIndex(read.data); at != nil {
			return read.from + int64(at[1]), true
		}
		line := int64(bytes.LastIndexByte(read.data, '\n') + 1) // where the last line begins
		if more := read.from+int64(len(read.data)) < read.total; more {
			if from = read.from + line; line == 0 {
				from = read.from + int64(len(read.data))
			}
			continue
		}
		from = read.from + line
		if read.over {
			return 0, false
		}
		select {
		case <-read.changed:
		case <-ctx.Done():
			return 0, false
		}
	}
}
