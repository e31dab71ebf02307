package roots

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"
)

// maxSwept is how many swept directories are remembered.
const maxSwept = 1000

// writers holds the locks of one process: while a writer holds a target, no other writer
// changes the target, anything below it, or a directory above it. It also remembers the
// directories in which the temporary files of earlier processes were removed. The zero value
// is ready to use and safe for concurrent use.
type writers struct {
	mu   sync.Mutex // guards held, free
	held []string   // absolute paths
	free chan struct{}

	sweeping sync.Mutex // guards the fields below
	started  time.Time
	swept    []os.FileInfo
}

// hold waits until all paths are free and takes them. It stops waiting when ctx ends.
func (w *writers) hold(ctx context.Context, paths []string) (release func(), err error) {
	for {
		wait := w.take(paths)
		if wait == nil {
			return func() { w.release(paths) }, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take takes the paths, or returns a channel that is closed when a path is released.
func (w *writers) take(paths []string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, held := range w.held {
		if slices.ContainsFunc(paths, func(path string) bool { return overlap(held, path) }) {
			if w.free == nil {
				w.free = make(chan struct{})
			}
			return w.free
		}
	}
	w.held = append(w.held, paths...)
	return nil
}

func (w *writers) release(paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range paths {
		if i := slices.Index(w.held, path); i >= 0 {
			w.held = slices.Delete(w.held, i, i+1)
		}
	}
	if w.free != nil {
		close(w.free)
		w.free = nil
	}
}

// overlap reports whether the paths are equal or one is below the other.
func overlap(a, b string) bool {
	below, same := beneath(a, b, false)
	above, _ := beneath(b, a, false)
	return below || same || above
}

// sweep removes what earlier processes left in the directory, on the first call for that
// directory. Other writers do not wait for it.
func (w *writers) sweep(dir *os.Root) {
	if started, first := w.begin(dir); first {
		sweep(dir, started)
	}
}

// begin reports whether the directory has not been swept yet, and marks it as swept.
func (w *writers) begin(dir *os.Root) (started time.Time, first bool) {
	info, err := dir.Stat(".")
	if err != nil {
		return time.Time{}, false // the write itself reports the error
	}
	w.sweeping.Lock()
	defer w.sweeping.Unlock()
	if w.started.IsZero() {
		w.started = time.Now()
	}
	if contains(w.swept, info) {
		return w.started, false
	}
	if len(w.swept) == maxSwept {
		w.swept = nil // start over; a second sweep only takes time
	}
	w.swept = append(w.swept, info)
	return w.started, true
}
