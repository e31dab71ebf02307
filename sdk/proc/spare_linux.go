package proc

import (
	"fmt"
	"os"
	"sync"

	"github.com/toolhost/toolhost/sdk/proc/internal/reaper"
)

// spare is a reaper that waits for the next command, since starting a reaper takes longer than
// executing most programs. There is none before the first command.
var spare struct {
	mu       sync.Mutex    // guards the fields below
	reaper   *running      // nil if there is none
	starting chan struct{} // closed when the reaper that is being started is ready; nil if there is none
}

// takeReaper returns a reaper that has received the files of a command and the beginning of
// the order, and the rest of the order.
func takeReaper(files []*os.File, order []byte) (*running, []byte, error) {
	spare.mu.Lock()
	r := spare.reaper
	spare.reaper = nil
	spare.mu.Unlock()
	if r != nil {
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

// prepareReaper starts the reaper of the next command in one of the goroutines. If that fails,
// the next command reports the error.
func prepareReaper(goroutines *sync.WaitGroup) {
	spare.mu.Lock()
	defer spare.mu.Unlock()
	if spare.reaper != nil || spare.starting != nil {
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
			spare.reaper = r
		}
		close(started)
	})
}
