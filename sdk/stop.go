package sdk

import (
	"slices"
	"time"
)

// stopTimeout is the time for all functions given to [Plugin.OnStop] together. A
// host kills a process that takes longer than two seconds.
const stopTimeout = time.Second

// OnStop adds a function that runs before the process ends, such as one that
// closes a database. Call OnStop where the database is opened, in the function
// given to [Configure]. The functions run one after the other, the last one first,
// and have one second together.
//
// When the host stops the plugin, its calls end first. When the host has died, calls may still
// run. A process that crashes or is killed runs none of the functions, so data must be safe
// without them.
func (p *Plugin) OnStop(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onStop = append(p.onStop, f)
}

// stop runs the functions given to [Plugin.OnStop], each of them once, and
// waits for them for a second at most.
func (p *Plugin) stop() {
	p.stopping.Lock() // a second caller waits for the first
	defer p.stopping.Unlock()
	p.mu.Lock()
	functions := p.onStop
	p.onStop = nil
	p.mu.Unlock()
	if len(functions) == 0 {
		return
	}
	done := make(chan struct{})
	go func() { // ends with the functions, or with the process
		defer close(done)
		for _, f := range slices.Backward(functions) {
			// The log has the panic, and the next one has its turn.
			_ = recovered(p.logger, "OnStop", func() error { f(); return nil })
		}
	}()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		p.logger.Warn("the plugin stops before all functions of OnStop have returned", "limit", stopTimeout)
	}
}
