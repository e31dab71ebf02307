package proc

import (
	"fmt"
	"os"
	"sync"

	"github.com/toolhost/toolhost/sdk/proc/internal/keeper"
)

// spare is a keeper that waits for a command: to start one takes longer than to
// execute most programs. There is none before the first command.
var spare struct {
	mu       sync.Mutex    // guards the rest
	keeper   *running      // nil if there is none
	starting chan struct{} // closed when one that is being started is there; nil if none is
}

// takeKeeper returns a keeper that has the files of one command and the beginning
// of the order, and the rest of that.
func takeKeeper(files []*os.File, order []byte) (*running, []byte, error) {
	spare.mu.Lock()
	r := spare.keeper
	spare.keeper = nil
	spare.mu.Unlock()
	if r != nil {
		if n, err := keeper.Send(r.control, files, order); err == nil {
			return r, order[n:], nil
		}
		r.close() // something has killed it
	}
	r, err := newKeeper()
	if err != nil {
		return nil, nil, err
	}
	n, err := keeper.Send(r.control, files, order)
	if err != nil {
		r.kill()
		r.close()
		return nil, nil, fmt.Errorf("start a command: %w", err)
	}
	return r, order[n:], nil
}

// prepareKeeper has one of the goroutines start the keeper of the next command. If
// it cannot be started, that command will say why.
func prepareKeeper(goroutines *sync.WaitGroup) {
	spare.mu.Lock()
	defer spare.mu.Unlock()
	if spare.keeper != nil || spare.starting != nil {
		return
	}
	started := make(chan struct{})
	spare.starting = started
	goroutines.Go(func() { // ends when the keeper is started
		r, err := newKeeper()
		spare.mu.Lock()
		defer spare.mu.Unlock()
		spare.starting = nil
		if err == nil {
			spare.keeper = r
		}
		close(started)
	})
}

// DropKeeper ends the process that waits for the next command, and returns when
// it has ended; the next command starts another. It is for tests that look for
// processes, or goroutines, which are left.
func DropKeeper() {
	spare.mu.Lock()
	for spare.starting != nil {
		started := spare.starting
		spare.mu.Unlock()
		<-started
		spare.mu.Lock()
	}
	r := spare.keeper
	spare.keeper = nil
	spare.mu.Unlock()
	if r != nil {
		r.kill()
		<-r.gone
		r.close()
	}
}
