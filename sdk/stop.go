package sdk

import (
	"slices"
	"time"
)

// stopTimeout is what all functions given to [Plugin.OnStop] have together. A
// host kills a process that takes longer than two seconds.
const stopTimeout = time.Second

// OnStop adds a function that runs before the process ends: to close a
// database, say. Best call it where the thing is opened, in the function given
// to [Configure]. The functions run one after the other, the last one first,
// and have one second together.
//
// When the host stops the plugin, its calls have ended by then. When the host
// itself has died they may still run. A process that is killed, or that
// crashes, runs nothing: what must not be lost has to be safe without it.
func (p *Plugin) OnStop(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onStop = append(p.onStop, f)
}

// Stop runs the functions given to [Plugin.OnStop], each of them once, and
// waits for them for a second at most. [Plugin.Serve] calls it at the end;
// package sdktest does when a test is done with the plugin.
func (p *Plugin) Stop() {
	p.stopping.Lock() // whoever comes second waits for the first
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
		p.logger.Warn("the plugin stops before all that runs on stop has ended", "limit", stopTimeout)
	}
}
