package sdk

import "slices"

// OnSessionEnd adds a function that is called with the id of a session
// ([Call.Session]) when the session has ended, so that the plugin can free what
// it keeps for the session: a shell, a cache, an open file. Add it before
// [Plugin.Serve]. The function should return soon. It may be called while calls
// of the session still run.
//
// The host does not learn of the end of every session: over REST, a session is a
// name that clients choose. Nor does it tell a process that is not running, or
// is busy. Bound what you keep for a session in another way too, such as by the
// time since its last call.
func (p *Plugin) OnSessionEnd(f func(session string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onSessionEnd = append(p.onSessionEnd, f)
}

// endSession calls the functions given to OnSessionEnd.
func (p *Plugin) endSession(id string) {
	p.mu.Lock()
	functions := slices.Clone(p.onSessionEnd)
	p.mu.Unlock()
	for _, f := range functions {
		// A panic is logged, and the next function is called.
		_ = recovered(p.logger, "OnSessionEnd", func() error { f(id); return nil })
	}
}
