package proc

import (
	"fmt"
	"os"
	"sync"

	"github.com/toolhost/toolhost/sdk/proc/internal/reaper"
)

// spare is a reaper that waits for a command: to start one takes longer than to
// execute most programs. There is none before the first command.
var spare struct {
	mu       sync.Mutex    // guards the rest
	reaper   *running      // nil if there is none
	starting chan struct{} // closed when one that is being started is there; nil if none is
}

// takeReaper returns a reaper that has the files of one command and the beginning
// of the order, and the rest of that.
func takeReaper(files []*os.File, order []byte) (*running, []byte, error) {
	spare.mu.Lock()
	r := spare.reaper
	spare.reaper = nil
	spare.mu.Unlock()
	if r != nil {
		if n, err := reaper.Send(r.control, files, order); err == nil {
			return r, order[n:], nil
		}
		r.close() // something has killed it
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

// prepareReaper has one of the goroutines start the reaper of the next command. If
// it cannot be started, that command will say why.
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
