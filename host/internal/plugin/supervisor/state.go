package supervisor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// Phase is the phase of a plugin's life.
type Phase int

// The phases of a plugin.
const (
	// Stopped: it is not running; the next call starts it.
	Stopped Phase = iota + 1
	// Starting: its process is starting, until it has answered.
	Starting
	// Configuring: it gets its settings.
	Configuring
	// Ready: it takes calls.
	Ready
	// Degraded: it does not answer and gets no new calls.
	Degraded
	// Draining: it is stopping.
	Draining
	// Backoff: it crashed, and the next start must wait.
	Backoff
	// Broken: it cannot be started, or it crashed so often that it stays off until
	// [State.RetryAt].
	Broken
)

var phaseNames = []string{"stopped", "starting", "configuring", "ready", "degraded", "draining", "backoff", "broken"}

// String returns the name that JSON and lists use.
func (p Phase) String() string {
	if p < Stopped || p > Broken {
		return fmt.Sprintf("Phase(%d)", int(p))
	}
	return phaseNames[p-Stopped]
}

// MarshalText implements [encoding.TextMarshaler].
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Phase) UnmarshalText(text []byte) error {
	i := slices.Index(phaseNames, string(text))
	if i < 0 {
		return fmt.Errorf("unknown phase %q", text)
	}
	*p = Stopped + Phase(i)
	return nil
}

// State is the state of one plugin.
type State struct {
	Name  string    `json:"name"`
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"`
	// PID is the process id of the newest process, 0 if none is running.
	PID int `json:"pid,omitempty"`
	// Digest is the hex SHA-256 of its program, "" if it was never read.
	Digest string `json:"digest,omitempty"`
	// Version is the version that the plugin reports.
	Version string `json:"version,omitempty"`
	// Calls is the number of calls in progress.
	Calls int `json:"calls"`
	// Crashes is the number of crashes since the host started.
	Crashes int `json:"crashes"`
	// LastCrash is nil if it never crashed.
	LastCrash *process.Crash `json:"last_crash,omitempty"`
	// RetryAt is when the next call may start a plugin that has failed; zero if it may
	// start now.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Limits are the limits of each process.
	Limits sandbox.Limits `json:"limits"`
	// Isolation is the configured isolation.
	Isolation sandbox.Isolation `json:"isolation"`
	// Scope says whose calls share a process. With user and session, Phase is ready while any
	// process runs, PID is 0, Crashes counts all processes, and Instances lists them.
	Scope Scope `json:"isolation_scope"`
	// SplitTiers says that read_only calls have a process of their own, a reader. Instances lists
	// the readers.
	SplitTiers bool       `json:"split_tiers,omitempty"`
	Instances  []Instance `json:"instances,omitempty"`
	// Sandbox is the confinement in force for the newest process, nil if none is running. With
	// the scopes user and session, it is that of the process that started last.
	Sandbox *sandbox.Report `json:"sandbox,omitempty"`
	// ReaderSandbox is that of the reader that started last, nil if none has.
	ReaderSandbox *sandbox.Report `json:"reader_sandbox,omitempty"`
	// BrokenClaims are signs that tools which claim to be read_only tried to change something in a
	// reader.
	BrokenClaims []BrokenClaim `json:"broken_claims,omitempty"`
	// SettingsSchema is the JSON Schema of its settings, as far as it is known; nil if it has none.
	SettingsSchema json.RawMessage `json:"settings_schema,omitempty"`
	// Refused explains why it cannot be started and what to do; "" if it can.
	Refused string `json:"refused,omitempty"`
}

// Plugins returns the state of each plugin, in the order of the configuration.
func (s *Supervisor) Plugins() []State {
	s.mu.RLock()
	defer s.mu.RUnlock()
	states := make([]State, 0, len(s.plugins))
	for _, p := range s.plugins {
		state := s.managers[p.Name].state()
		if old := s.replaced[p.Name]; old != nil {
			state.Calls += old.state().Calls
		}
		states = append(states, state)
	}
	return states
}

func (m *manager) state() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.base
	state := State{
		Name: m.plugin.Name, Limits: m.plugin.Limits, Isolation: m.plugin.Confinement.Isolation, Scope: m.plugin.Scope, SplitTiers: m.plugin.SplitTiers, Since: p.since,
		Digest: m.digest, Version: m.version, Crashes: m.allCrashes, LastCrash: p.lastCrash,
	}
	state.Phase, state.RetryAt = p.nextPhase()
	state.PID, state.Calls, state.Sandbox = p.running()
	for _, scoped := range m.scoped {
		m.addInstance(&state, scoped)
	}
	for of, h := range m.histories {
		m.addWaiting(&state, of, h)
	}
	if m.plugin.Scope != Shared {
		state.Sandbox = m.report
	}
	state.ReaderSandbox, state.BrokenClaims = m.ofReader, m.claimsBroken()
	slices.SortFunc(state.Instances, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Session, b.Session), compareBool(a.Reader, b.Reader))
	})
	if json.Valid(m.learned.schema) {
		state.SettingsSchema = m.learned.schema
	}
	if p.refused != nil {
		state.Refused = p.refused.Error()
	}
	return state
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// addInstance adds the state of one user's or session's processes to that of the plugin. The caller
// holds mu.
func (m *manager) addInstance(state *State, p *pool) {
	i := p.instance(p.of)
	i.Since = p.since
	i.Phase, i.RetryAt = p.nextPhase()
	i.PID, i.Calls, _ = p.running()
	state.Instances = append(state.Instances, i)
	state.Calls += i.Calls
	state.addCrash(p.lastCrash)
	if i.Phase == Ready && state.Phase == Stopped {
		state.Phase, state.Since = Ready, i.Since
	}
}

// addCrash makes a crash the last one if it is. c may be nil.
func (s *State) addCrash(c *process.Crash) {
	if c != nil && (s.LastCrash == nil || s.LastCrash.Time.Before(c.Time)) {
		s.LastCrash = c
	}
}

// addWaiting adds a user whose sessions have no process and may not start one yet. The caller holds
// mu.
func (m *manager) addWaiting(state *State, of owner, h *history) {
	state.addCrash(h.lastCrash)
	waits := h.backoff.wait(time.Now()) > 0
	if !waits && h.refused == nil || slices.ContainsFunc(state.Instances, func(i Instance) bool { return i.User == of.user && i.Reader == of.reader }) {
		return
	}
	i := h.instance(of)
	i.Phase, i.Since = Backoff, m.base.since
	if h.lastCrash != nil {
		i.Since = h.lastCrash.Time
	}
	if h.refused != nil || h.backoff.broken {
		i.Phase = Broken
	}
	if waits {
		i.RetryAt = h.backoff.until
	}
	state.Instances = append(state.Instances, i)
}

// instance returns what an Instance says about the past.
func (h *history) instance(of owner) Instance {
	i := Instance{User: of.user, Session: of.session, Reader: of.reader, Crashes: h.crashes, LastCrash: h.lastCrash}
	if h.refused != nil {
		i.Refused = h.refused.Error()
	}
	return i
}

// nextPhase returns the phase, and when the next call may start a process that has failed. The
// caller holds mu.
func (p *pool) nextPhase() (phase Phase, retryAt time.Time) {
	switch waits := p.backoff.wait(time.Now()) > 0; {
	case p.phase != Backoff && (p.phase != Broken || p.refused != nil):
	case waits:
		return p.phase, p.backoff.until
	default:
		return Stopped, time.Time{} // the next call starts it
	}
	return p.phase, time.Time{}
}

// running returns the process id and the confinement of the newest process, 0 and nil if there is
// none, and the number of calls in progress. The caller holds mu.
func (p *pool) running() (pid, calls int, report *sandbox.Report) {
	newest := 0
	for generation, i := range p.instances {
		calls += i.calls
		if generation > newest {
			newest, pid = generation, i.proc.PID()
			report = &i.proc.Sandboxed().Report // it never changes
		}
	}
	return pid, calls, report
}
