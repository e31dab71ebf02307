package main

import "sync"

// log keeps the last of what a job has written.
type log struct {
	mu      sync.Mutex // guards everything below
	keep    int
	data    []byte // the last bytes; a ring once there are as many as are to be kept
	next    int    // where the ring goes on
	total   int64  // of all that was written
	over    bool
	changed chan struct{} // closed, and replaced, when there is more, or no more to come
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

// end says that nothing more will come.
func (l *log) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.tell()
}

// tell wakes whoever waits. l.mu is held.
func (l *log) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// page is a part of a log.
type page struct {
	data  []byte
	from  int64 // where it begins
	total int64 // how much there is by now
	over  bool  // nothing more will come
	// changed is closed when this is no longer all.
	changed <-chan struct{}
}

// read returns what was written from a place on, or from where the log begins
// that is still kept, and most bytes at most. A negative place counts from the
// end.
func (l *log) read(from int64, most int) page {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.total - int64(len(l.data))
	if from < 0 {
		from += l.total
	}
	from = min(max(from, kept), l.total)
	at := int(from - kept) // of what is kept
	n := min(most, len(l.data)-at)
	data := make([]byte, 0, n)
	for len(data) < n {
		begin := (l.next + at + len(data)) % len(l.data)
		data = append(data, l.data[begin:min(begin+n-len(data), len(l.data))]...)
	}
	return page{data: data, from: from, total: l.total, over: l.over, changed: l.changed}
}
