package sdk

import "slices"

// OnSessionEnd adds a function that is called with the id of a session
// ([Call.Session]) that has ended, so that the plugin gives up what it keeps for
// it: a shell, a cache, an open file. Add it before [Plugin.Serve]. It should
// return soon, and may be called while calls of that session come to their end.
//
// Not every session has an end that the host knows of: over REST it is a name
// that clients choose. A process that is not running hears of nothing, and one
// that is busy may not. What is kept for a session needs a bound besides, such
// as the time since its last call.
func (p *Plugin) OnSessionEnd(f func(session string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onSessionEnd = append(p.onSessionEnd, f)
}

// endSession tells the author's functions that a session has ended.
func (p *Plugin) endSession(id string) {
	p.mu.Lock()
	functions := slices.Clone(p.onSessionEnd)
	p.mu.Unlock()
	for _, f := range functions {
		// The log has the panic, and the next one has its turn.
		_ = recovered(p.logger, "OnSessionEnd", func() error { f(id); return nil })
	}
}
