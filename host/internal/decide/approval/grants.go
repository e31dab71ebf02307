package approval

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// countEvery is how often the uses of grants are written.
	countEvery = 5 * time.Second
	// maxGrants bounds the grants of one user that are in force.
	maxGrants = 10_000
	// keepEnded is how long an ended grant is kept.
	keepEnded = 90 * 24 * time.Hour
)

// GrantOptions configure [NewGrants].
type GrantOptions struct {
	// Store keeps the grants; required.
	Store *store.Store
	// Logger gets the errors that no caller sees; nil means none.
	Logger hclog.Logger
	// Basis returns the current program and tools of a plugin, zero if they are not
	// known. If Basis is nil, none are known.
	Basis func(plugin string) catalog.Basis
	// Now is the wall clock; nil means [time.Now].
	Now func() time.Time
}

// Grants keeps the standing answers. Its methods may be called from any goroutine;
// those without a context do no I/O.
type Grants struct {
	store   *store.Store
	logger  hclog.Logger
	basis   func(plugin string) catalog.Basis
	now     func() time.Time
	started time.Time // with a monotonic clock reading

	writing sync.Mutex   // held across a change on disk and in memory; taken before mu
	mu      sync.RWMutex // guards index and byID
	index   map[key][]*counted
	byID    map[string]*counted // grants in force, and ended ones until their uses are on disk

	used    chan struct{} // wakes count; holds one
	stop    context.CancelFunc
	stopped chan struct{} // closed when count has ended
	close   sync.Once
}

// NewGrants returns the grants in the store, without those for sessions, which ended
// with the earlier host. ctx bounds NewGrants only; Close the Grants before the store.
func NewGrants(ctx context.Context, opts GrantOptions) (*Grants, error) {
	if opts.Store == nil {
		return nil, errors.New("grants: no store is given")
	}
	g := &Grants{
		store: opts.Store, logger: opts.Logger, basis: opts.Basis, now: opts.Now, started: time.Now(),
		index: make(map[key][]*counted), byID: make(map[string]*counted),
		used: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	if g.logger == nil {
		g.logger = hclog.NewNullLogger()
	}
	if g.basis == nil {
		g.basis = func(string) catalog.Basis { return catalog.Basis{} }
	}
	if g.now == nil {
		g.now = time.Now
	}
	inForce, err := g.query(ctx, "WHERE "+lasting+" AND session = ''", sql.Named("now", g.now().UnixMilli()))
	if err != nil {
		return nil, err
	}
	g.put(inForce)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	g.stop = stop
	go g.count(running) // until Close, which waits for it
	return g, nil
}

// Close writes the remaining uses and returns when nothing is running. Further calls
// do nothing.
func (g *Grants) Close() error {
	g.close.Do(func() {
		g.stop()
		<-g.stopped
	})
	return nil
}

// List returns the grants that a caller may see as an approver or an admin, the
// newest first. If ended is true, it includes ended grants that are still kept.
func (g *Grants) List(ctx context.Context, by auth.Caller, ended bool) ([]Grant, error) {
	where, args := "ORDER BY id DESC", []any(nil)
	if !ended {
		where, args = "WHERE "+lasting+" ORDER BY id DESC", []any{sql.Named("now", g.now().UnixMilli())}
	}
	all, err := g.query(ctx, where, args...)
	if err != nil {
		return nil, err
	}
	seen := all[:0]
	for _, grant := range all {
		if !sees(by, grant.User) {
			continue
		}
		if grant = g.asItIs(grant); ended || grant.State.lasts() {
			seen = append(seen, grant)
		}
	}
	return seen, nil
}

// asItIs adds the uses that are not on disk, and the state, to a grant from the store.
func (g *Grants) asItIs(grant Grant) Grant {
	g.mu.RLock()
	defer g.mu.RUnlock()
	c := g.byID[grant.ID]
	switch {
	case c != nil:
		grant.State, grant.Given = g.state(c), c.given
		grant.Uses += c.uses.Load()
		grant.LastUsed = later(grant.LastUsed, timeOf(c.lastUsed.Load()))
	case grant.MaxUses > 0 && grant.Uses >= grant.MaxUses:
		grant.State = GrantUsed
	case !grant.Expires.IsZero() && !g.now().Before(grant.Expires):
		grant.State = GrantExpired
	default:
		grant.State = GrantEnded
	}
	if !grant.Revoked.IsZero() {
		grant.State = GrantRevoked
	}
	if grant.State == GrantActive {
		grant.pause(g.basis(grant.Plugin))
	}
	return grant
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Revoke ends a grant: after Revoke has returned, [Grants.Covering] does not return it.
// Approvers can revoke the grants of the users they approve for; admins can revoke all. For
// any other grant the error is [tool.NotFound]. If the grant has ended already, Revoke returns
// it with [tool.Conflict].
func (g *Grants) Revoke(ctx context.Context, id string, by auth.Caller) (Grant, error) {
	if by.Roles.Has(auth.Agent) {
		return Grant{}, tool.Errorf(tool.PermissionDenied, "Only an approver or an admin revokes grants")
	}
	g.writing.Lock()
	defer g.writing.Unlock()
	grant, err := g.find(ctx, id)
	switch {
	case err != nil:
		return Grant{}, err
	case !sees(by, grant.User):
		return Grant{}, noGrantWith(id)
	case !grant.State.lasts():
		return grant, grant.over()
	}
	now := g.now().UnixMilli()
	grant.Revoked, grant.RevokedBy, grant.State, grant.Paused = timeOf(now), by.User, GrantRevoked, nil
	err = g.store.Do(ctx, func(tx *sql.Tx) error {
		_, err := execOne(ctx, tx, "UPDATE grants SET revoked = ?, revoked_by = ? WHERE id = ? AND revoked = 0", now, by.User, id)
		return err
	})
	if err != nil {
		return Grant{}, unwritten(ctx, err, "The end of grant %s could not be recorded, so it is still in force", id)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(g.byID[id], GrantRevoked)
	return grant, nil
}

// EndSession ends the grants for a session of any user.
func (g *Grants) EndSession(session string) {
	if session == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.byID {
		if c.grant.Session == session {
			g.drop(c, GrantEnded)
		}
	}
}

// drop ends a grant. g.mu is held.
func (g *Grants) drop(c *counted, why GrantState) {
	if c == nil || c.over != "" {
		return
	}
	c.over = why
	k := c.grant.key()
	g.index[k] = slices.DeleteFunc(g.index[k], func(other *counted) bool { return other == c })
	if len(g.index[k]) == 0 {
		delete(g.index, k)
	}
	g.again() // removes it
}

// same returns a grant in force, without an end, that covers exactly what another would; nil if
// there is none.
func (g *Grants) same(grant *Grant) *counted {
	if grant.MaxUses > 0 || !grant.Expires.IsZero() {
		return nil
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, c := range g.index[grant.key()] {
		if c.grant.MaxUses == 0 && c.grant.Expires.IsZero() && c.grant.Path == grant.Path && c.given.Holds(grant.Given, grant.Tool) {
			return c
		}
	}
	return nil
}

// put adds grants that are on disk and in force, and drops ended ones.
func (g *Grants) put(grants []Grant) {
	now, elapsed := g.now(), g.elapsed()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.byID {
		if state := g.state(c); state != GrantActive {
			g.drop(c, state)
		}
	}
	for _, grant := range grants {
		if g.byID[grant.ID] != nil {
			continue // the answer confirmed a grant that was in force
		}
		c := &counted{grant: grant, given: grant.Given}
		if !grant.Expires.IsZero() {
			// If the clock was set back, a grant may be from the future, and its age is
			// unknown: it lasts for its whole duration, and no longer.
			c.deadline = elapsed + max(1, min(grant.Expires.Sub(now), grant.Expires.Sub(grant.Created)))
		}
		k := grant.key()
		g.byID[grant.ID] = c
		if g.index[k] = append(g.index[k], c); grant.MaxUses == 0 { // grants without a limit of uses first
			last := len(g.index[k]) - 1
			g.index[k][0], g.index[k][last] = g.index[k][last], g.index[k][0]
		}
	}
}

// elapsed returns the time since the Grants were created, by the monotonic clock.
func (g *Grants) elapsed() time.Duration { return time.Since(g.started) }
