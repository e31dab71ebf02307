package supervisor

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
)

const (
	// killTimeout is how long go-plugin may take to end a process gently.
	killTimeout = 3 * time.Second
	// deathTimeout is how long the system may take to end a process that was
	// killed; only one that hangs in the kernel takes longer.
	deathTimeout = 5 * time.Second
)

// instance is one process of a plugin. It is used for one life: a plugin that
// starts again gets a new one with the next generation.
type instance struct {
	key    instanceKey
	runner *processRunner
	client *plugin.Client
	wire   *wire
	log    hclog.Logger

	about    description
	digest   string // of its binary
	revision string // of what it published
	scratch  string
	readOnly bool      // whether the workspace was read-only when it was started
	ready    time.Time // when it began to take calls

	// stop is closed to ask the watcher to stop the process.
	stop chan struct{}
	// ended is closed when the process is gone and its keeper knows.
	ended chan struct{}
	// crash is how it ended, nil if the host stopped it; set before ended is
	// closed.
	crash *Crash

	// unused is closed when it is stopping and its last call has ended.
	unused chan struct{}
	// gaveUp has room for one signal: that a call was given up which it may
	// still work on, and how long it has to end that.
	gaveUp chan time.Duration
	// sessions are those that have ended and that it is to be told of; nil if it
	// does not want to know.
	sessions chan string

	// The rest is guarded by the keeper's mu.
	stopping bool
	patience time.Duration // how long its calls may go on when it stops
	why      string        // the reason why it stops, for callers; "" if there is none
	suspect  bool          // it may still work on a call that was given up
	blamed   bool          // it is ended for what it did, though it was stopping
	calls    int
	lastUsed time.Time // when a call last began or ended
	heard    time.Time // when it last completed something
	looked   time.Time // when the last look began whether it is exposed
	looking  *look     // the one that is under way; nil: none is
	misses   int       // health checks without an answer, in a row
}

// suspects notes that the process may still work on a call which was given up,
// and has the given time to end it. It is called with the keeper's mu held.
func (i *instance) suspects(rest time.Duration) {
	i.suspect = true
	select {
	case i.gaveUp <- rest:
	default: // the watcher will hear of another one
	}
}

func (i *instance) can(capability string) bool {
	return slices.Contains(i.about.Capabilities, capability)
}

// discard ends the process, gently if it lets us, and frees all that belongs
// to it. It takes at most killTimeout and twice deathTimeout.
func (i *instance) discard() {
	killed := make(chan struct{})
	go func() { // ends when the process has, which the watchdog sees to
		defer close(killed)
		i.client.Kill()
	}()
	if !within(killTimeout, killed) {
		i.runner.end("")
		if !within(deathTimeout, killed) {
			i.log.Error("the process does not end although it was killed", "pid", i.runner.ID())
		}
	}
	i.runner.end("") // what go-plugin did not know of
	if i.runner.exited != nil && !within(deathTimeout, i.runner.exited) {
		i.log.Error("processes do not end although they were killed", "pid", i.runner.ID())
	}
	for _, dir := range []string{i.scratch, i.runner.socketDir} {
		if dir == "" {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			i.log.Warn("a directory of the plugin is left over", "error", err)
		}
	}
}

// endsWithin is [within] for no longer than ctx.
func endsWithin(ctx context.Context, d time.Duration, done <-chan struct{}) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return within(0, done)
	}
}

// within reports whether done is closed before d has passed.
func within(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	}
	select { // both may have come
	case <-done:
		return true
	default:
		return false
	}
}
