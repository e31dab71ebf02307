package supervisor

import (
	"fmt"
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
)

// Phase says where a plugin is in its life.
type Phase int

// The phases of a plugin.
const (
	// Stopped: it is not running; the next call starts it.
	Stopped Phase = iota + 1
	// Starting: its process is starting, until it has answered.
	Starting
	// Configuring: it is told its settings.
	Configuring
	// Ready: it takes calls.
	Ready
	// Degraded: it does not answer, and gets no new calls.
	Degraded
	// Draining: it is stopping.
	Draining
	// Backoff: it crashed and is not started again yet.
	Backoff
	// Broken: it cannot be started, or has crashed so often that it stays off until
	// State.RetryAt.
	Broken
)

var phaseNames = []string{"stopped", "starting", "configuring", "ready", "degraded", "draining", "backoff", "broken"}

// String returns the name used in JSON and lists.
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

// State is what can be seen of one plugin.
type State struct {
	Name  string    `json:"name"`
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"`
	// PID is that of the newest process, 0 if none is running.
	PID int `json:"pid,omitempty"`
	// Digest is the hex SHA-256 of its binary, "" if that was never read.
	Digest string `json:"digest,omitempty"`
	// Version is what it says of itself.
	Version string `json:"version,omitempty"`
	// Calls is how many are under way.
	Calls int `json:"calls"`
	// Crashes is how often it crashed since the host started.
	Crashes int `json:"crashes"`
	// LastCrash is nil if it never crashed.
	LastCrash *Crash `json:"last_crash,omitempty"`
	// RetryAt is when the next call may start it again, of a plugin that has failed;
	// zero if it may start now.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Limits are those of its processes.
	Limits sandbox.Limits `json:"limits"`
	// Isolation is how far its configuration wants it kept apart.
	Isolation sandbox.Isolation `json:"isolation"`
	// Sandbox is what is in force for the newest process, nil if none is running.
	Sandbox *sandbox.Report `json:"sandbox,omitempty"`
	// Refused says what is wrong and what to do, if it cannot be started.
	Refused string `json:"refused,omitempty"`
}

// Plugins returns the state of each plugin, in the order of the configuration.
func (s *Supervisor) Plugins() []State {
	s.mu.RLock()
	defer s.mu.RUnlock()
	states := make([]State, 0, len(s.plugins))
	for _, p := range s.plugins {
		state := s.keepers[p.Name].state()
		if before := s.leaving[p.Name]; before != nil {
			state.Calls += before.state().Calls
		}
		states = append(states, state)
	}
	return states
}

func (k *keeper) state() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	state := State{
		Name: k.plugin.Name, Limits: k.plugin.Limits, Isolation: k.plugin.Confinement.Isolation, Phase: k.phase, Since: k.since,
		Digest: k.digest, Version: k.version, Crashes: k.crashes, LastCrash: k.lastCrash,
	}
	switch waits := k.backoff.wait(time.Now()) > 0; {
	case k.phase != Backoff && (k.phase != Broken || k.refused != nil):
	case waits:
		state.RetryAt = k.backoff.until
	default:
		state.Phase = Stopped // the next call starts it
	}
	newest := 0
	for key, i := range k.instances {
		state.Calls += i.calls
		if key.generation > newest {
			newest = key.generation
			state.PID = i.runner.proc.PID()
			state.Sandbox = &i.runner.proc.Report // it never changes
		}
	}
	if k.refused != nil {
		state.Refused = k.refused.Error()
	}
	return state
}
