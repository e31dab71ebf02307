package supervisor

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/process"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Scope says whose calls share a process of a plugin.
type Scope int

// The scopes.
const (
	// Shared: one process takes the calls of everybody.
	Shared Scope = iota
	// PerUser: each user has a process. Its state directory is the user's, which is kept.
	PerUser
	// PerSession: each session of a user has a process. Its state directory ends with the
	// process.
	PerSession
)

var scopeNames = []string{"shared", "user", "session"}

// Scopes returns the names of all scopes.
func Scopes() []string { return slices.Clone(scopeNames) }

// ParseScope reads the name of a scope.
func ParseScope(name string) (Scope, error) {
	i := slices.Index(scopeNames, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown scope %q, expected one of %v", name, scopeNames)
	}
	return Scope(i), nil
}

// String returns the name that the configuration and JSON use.
func (s Scope) String() string {
	if s < Shared || s > PerSession {
		return fmt.Sprintf("Scope(%d)", int(s))
	}
	return scopeNames[s]
}

// MarshalText implements [encoding.TextMarshaler].
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Scope) UnmarshalText(text []byte) (err error) {
	*s, err = ParseScope(string(text))
	return err
}

// owner is whose calls a pool takes. The base pool of a plugin has none: it takes the calls of
// everybody, or only describes the plugin if each owner has a pool.
type owner struct {
	user, session string
	reader        bool // the read_only calls, with [Plugin.SplitTiers]
}

// id returns a name for an owner, which itself may contain anything.
func (o owner) id() string {
	text := o.user + "\x00" + o.session
	if o.reader {
		text += "\x00reader"
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// ownDirs makes the directory of the state of a process and returns it, or none if that directory
// shall end with the process.
func (p *pool) ownDirs() (own []string, err error) {
	dir := p.stateDir()
	switch {
	case p.of.reader:
		return nil, nil
	case p.plugin.Scope == Shared:
		err = os.MkdirAll(dir, 0o700)
	case p.plugin.Scope == PerUser && p != p.base:
		if err = os.MkdirAll(dir, 0o700); err == nil && os.Geteuid() == 0 {
			// The plugin's own user may have had it, with another scope. Each user has a part.
			err = os.Lchown(dir, 0, 0)
		}
		if err == nil {
			dir, err = p.userDir(p.of.user)
		}
	default:
		return nil, nil
	}
	return []string{dir}, err
}

// maxRemembered bounds the pools without a process that are kept because their processes
// crashed.
const maxRemembered = 1000

// poolFor returns the pool that takes a call. The caller holds mu.
func (m *manager) poolFor(c *tool.Call) *pool {
	of := m.ownerOf(c.Context.User, c.Context.Session)
	if of.reader = m.plugin.SplitTiers && c.Tier == tool.ReadOnly; !m.owned(of) {
		return m.base
	}
	p := m.scoped[of]
	if p == nil {
		m.forgetOldest()
		p = newPool(m, of, m.historyOf(of))
		if m.plugin.Scope != Shared {
			p.log = p.log.With("user", of.user)
		}
		if of.session != "" {
			p.log = p.log.With("session", of.session)
		}
		if of.reader {
			p.log = p.log.With("process", "reader")
		}
		m.scoped[of] = p
	}
	return p
}

// ownerOf returns who owns the processes for the calls of a user and session.
func (m *manager) ownerOf(user, session string) owner {
	switch m.plugin.Scope {
	case PerUser:
		return owner{user: user}
	case PerSession:
		return owner{user: user, session: session}
	case Shared:
	}
	return owner{}
}

// owned reports whether an owner has a pool other than the base pool.
func (m *manager) owned(of owner) bool { return m.plugin.Scope != Shared || of.reader }

// pools returns all pools. The caller holds mu.
func (m *manager) pools() []*pool {
	all := make([]*pool, 0, 1+len(m.scoped))
	all = append(all, m.base)
	for _, p := range m.scoped {
		all = append(all, p)
	}
	return all
}

// historyOf returns the history for a new pool: that of all sessions of its user. The caller holds mu.
func (m *manager) historyOf(of owner) *history {
	if m.plugin.Scope != PerSession {
		return new(history)
	}
	of.session = ""
	h := m.histories[of]
	if h == nil {
		if len(m.histories) >= maxRemembered+m.plugin.MaxInstances {
			maps.DeleteFunc(m.histories, func(_ owner, h *history) bool { return h.clean() })
		}
		h = new(history)
		m.histories[of] = h
	}
	return h
}

// forget drops a pool that has no process, unless it has a history of its own that delays the next
// start. The caller holds mu.
func (m *manager) forget(p *pool) {
	if p != m.base && !p.inUse() && (p.clean() || m.plugin.Scope == PerSession) {
		delete(m.scoped, p.of)
	}
}

// forgetOldest drops the pool that has been without a process for longest if there are too many.
// The caller holds mu.
func (m *manager) forgetOldest() {
	if len(m.scoped) < maxRemembered+m.plugin.MaxInstances {
		return
	}
	var oldest *pool
	for _, p := range m.scoped {
		if !p.inUse() && (oldest == nil || p.since.Before(oldest.since)) {
			oldest = p
		}
	}
	if oldest != nil {
		delete(m.scoped, oldest.of)
	}
}

// inUse reports whether a call or a process belongs to the pool. The caller holds mu.
func (p *pool) inUse() bool {
	return p.callers > 0 || p.starting != nil || p.turn != nil || len(p.instances) > 0
}

// Instance is the state of the processes of one user or session, or of the reader of everybody.
type Instance struct {
	User    string `json:"user"`
	Session string `json:"session,omitempty"`
	// Reader is set for the process that serves read_only calls, with [Plugin.SplitTiers].
	Reader bool      `json:"reader,omitempty"`
	Phase  Phase     `json:"phase"`
	Since  time.Time `json:"since"`
	// PID is the process id of the newest process, 0 if none is running.
	PID int `json:"pid,omitempty"`
	// Calls is the number of calls in progress.
	Calls int `json:"calls"`
	// Crashes is the number of crashes since the first process of this user or session.
	Crashes int `json:"crashes"`
	// RetryAt is when the next call may start a process after crashes; zero if it may now.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// LastCrash is nil if there was none. Refused explains why no process can be started.
	LastCrash *process.Crash `json:"last_crash,omitempty"`
	Refused   string         `json:"refused,omitempty"`
}
