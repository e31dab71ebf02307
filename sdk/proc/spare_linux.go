package proc

import (
	"fmt"
	"os"
	"sync"

	"github.com/toolhost/toolhost/sdk/proc/internal/reaper"
)

// maxSpare is the maximum number of reapers that wait: for the next command, and for one beside
// it.
const maxSpare = 2

// spare are the reapers that wait for the next commands, since starting a reaper takes longer than
// executing most programs. There is none before the first command; then there is one that has
// run a command, or a new one if that cannot run another.
var spare struct {
	mu       sync.Mutex    // guards the fields below
	reapers  []*running    // the last one is next
	starting chan struct{} // closed when the reaper that is being started is ready; nil if there is none
}

// takeReaper returns a reaper that has received the files of a command and the beginning of
// the order, and the rest of the order.
func takeReaper(files []*os.File, order []byte) (*running, []byte, error) {
	for {
		r := spareReaper()
		if r == nil {
			break
		}
		if n, err := reaper.Send(r.control, files, order); err == nil {
			return r, order[n:], nil
		}
		r.close() // it was killed
	}
	r, err := newReaper()
	if err != nil {
		return nil, nil, err
	}
	n, err := reaper.Send(r.control, files, order)
	if err != nil {
		r.kill()
		r.close()
		return nil, nil, fmt.Errorf("start a command: %w", err)
	}
	return r, order[n:], nil
}

// spareReaper returns a reaper that waits, or nil.
func spareReaper() *running {
	spare.mu.Lock()
	defer spare.mu.Unlock()
	last := len(spare.reapers) - 1
	if last < 0 {
		return nil
	}
	r := spare.reapers[last]
	spare.reapers = spare.reapers[:last]
	return r
}

// keepReaper lets a reaper wait for another command, and reports whether there is room for it.
func keepReaper(r *running) bool {
	spare.mu.Lock()
	defer spare.mu.Unlock()
	if len(spare.reapers) >= maxSpare {
		return false
	}
	spare.reapers = append(spare.reapers, r)
	return true
}

// prepareReaper starts the reaper of the next command in one of the goroutines, if none waits.
// If that fails, the next command reports the error.
func prepareReaper(goroutines *sync.WaitGroup) {
	spare.mu.Lock()
	defer spare.mu.Unlock()
	if len(spare.reapers) > 0 || spare.starting != nil {
		return
	}
	started := make(chan struct{})
	spare.starting = started
	goroutines.Go(func() { // ends when the reaper is started
		r, err := newReaper()
		spare.mu.Lock()
		defer spare.mu.Unlock()
		spare.starting = nil
		if err == nil {
			spare.reapers = append(spare.reapers, r)
		}
		close(started)
	})
}
