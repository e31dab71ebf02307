package approval

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// countEvery is how often the uses of grants are written.
	countEvery = 5 * time.Second
	// maxGrants bounds the grants of one user that are in force.
	maxGrants = 1000
	// keepRevoked is how long a revoked grant is kept.
	keepRevoked = 90 * 24 * time.Hour
)

// Scope is how far a grant reaches.
type Scope string

// Always covers every call of the tool until the grant is revoked.
const Always Scope = "always"

// Grant is a standing answer: calls of a tool by a user run unasked where the
// policy lets a grant answer.
type Grant struct {
	// ID is the grant's own, "gr_" and a UUIDv7.
	ID     string `json:"id"`
	User   string `json:"user"`
	Plugin string `json:"plugin"`
	Tool   string `json:"tool"`
	Scope  Scope  `json:"scope"`
	// CreatedBy is the approver, and Approval the id of the record that was
	// answered so.
	CreatedBy string    `json:"created_by"`
	Approval  string    `json:"approval"`
	Created   time.Time `json:"created"`
	// Uses and LastUsed may lack the last seconds before the host was killed.
	Uses     int64     `json:"uses"`
	LastUsed time.Time `json:"last_used,omitzero"`
	// Revoked is zero while the grant is in force.
	Revoked   time.Time `json:"revoked,omitzero"`
	RevokedBy string    `json:"revoked_by,omitempty"`
}

func (g Grant) key() scopeKey { return scopeKey{g.User, g.Plugin, g.Tool} }

// GrantOptions are what [NewGrants] needs.
type GrantOptions struct {
	// Store keeps the grants; required.
	Store *store.Store
	// Logger takes what happens without a caller; nil drops it.
	Logger hclog.Logger
	// Now is the wall clock; nil means [time.Now].
	Now func() time.Time
}

// Grants are the standing answers. Its methods may be called concurrently;
// those without a context do no I/O.
type Grants struct {
	store  *store.Store
	logger hclog.Logger
	now    func() time.Time

	writing sync.Mutex   // held across a change on disk and in memory; taken before mu
	mu      sync.RWMutex // guards covers and byID
	covers  map[scopeKey]*counted
	byID    map[string]*counted

	used    chan struct{} // wakes the counter; holds one
	stop    context.CancelFunc
	stopped chan struct{} // closed when the counter has ended
	close   sync.Once
}

// scopeKey is what a grant covers.
type scopeKey struct{ user, plugin, tool string }

// counted is a grant in force and its uses that are not on disk yet.
type counted struct {
	grant    Grant // never changes
	uses     atomic.Int64
	lastUsed atomic.Int64
}

// NewGrants returns the grants in the store. ctx bounds NewGrants only; Close
// the Grants before the store.
func NewGrants(ctx context.Context, opts GrantOptions) (*Grants, error) {
	if opts.Store == nil {
		return nil, errors.New("grants: no store is given")
	}
	g := &Grants{
		store: opts.Store, logger: opts.Logger, now: opts.Now,
		covers: make(map[scopeKey]*counted), byID: make(map[string]*counted),
		used: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	if g.logger == nil {
		g.logger = hclog.NewNullLogger()
	}
	if g.now == nil {
		g.now = time.Now
	}
	inForce, err := g.query(ctx, "WHERE revoked = 0")
	if err != nil {
		return nil, err
	}
	for _, grant := range inForce {
		g.put(grant)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	g.stop = stop
	go g.count(running) // until Close, which waits for it
	return g, nil
}

// Close writes the uses that are not written yet, and returns when nothing runs
// any more. Further calls do nothing.
func (g *Grants) Close() error {
	g.close.Do(func() {
		g.stop()
		<-g.stopped
	})
	return nil
}

// Covering returns the grant that covers the calls of a tool by a user.
func (g *Grants) Covering(user, plugin, name string) (Grant, bool) {
	g.mu.RLock()
	c := g.covers[scopeKey{user, plugin, name}]
	g.mu.RUnlock()
	if c == nil {
		return Grant{}, false
	}
	return c.grant, true
}

// Used counts a call that ran because of a grant. It is written some seconds
// later.
func (g *Grants) Used(id string) {
	g.mu.RLock()
	c := g.byID[id]
	g.mu.RUnlock()
	if c == nil {
		return
	}
	c.lastUsed.Store(g.now().UnixMilli())
	c.uses.Add(1)
	g.again()
}

// List returns the grants that a caller may see as an approver or an admin, the
// newest first; also revoked ones if they are wanted.
func (g *Grants) List(ctx context.Context, by auth.Caller, revoked bool) ([]Grant, error) {
	where := "WHERE revoked = 0 ORDER BY id DESC"
	if revoked {
		where = "ORDER BY id DESC"
	}
	all, err := g.query(ctx, where)
	if err != nil {
		return nil, err
	}
	seen := all[:0]
	for _, grant := range all {
		if sees(by, grant.User) {
			seen = append(seen, g.counted(grant))
		}
	}
	return seen, nil
}

// counted adds what is not on disk yet.
func (g *Grants) counted(grant Grant) Grant {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if c := g.byID[grant.ID]; c != nil {
		grant.Uses += c.uses.Load()
		grant.LastUsed = later(grant.LastUsed, timeOf(c.lastUsed.Load()))
	}
	return grant
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Revoke ends a grant: no call that asks [Grants.Covering] after Revoke has
// returned is covered by it. Approvers revoke grants of users for whom they
// approve, admins all; any other grant is [tool.NotFound].
func (g *Grants) Revoke(ctx context.Context, id string, by auth.Caller) (Grant, error) {
	missing := tool.Errorf(tool.NotFound, "No grant %s", tool.VisibleName(short(id, maxName))).WithHint("toolhost grants list shows those in force")
	if by.Roles.Has(auth.Agent) {
		return Grant{}, tool.Errorf(tool.PermissionDenied, "Only an approver or an admin revokes grants")
	}
	g.writing.Lock()
	defer g.writing.Unlock()
	found, err := g.query(ctx, "WHERE id = ?", id)
	if err != nil {
		return Grant{}, err
	}
	if len(found) == 0 || !sees(by, found[0].User) {
		return Grant{}, missing
	}
	grant := g.counted(found[0])
	if !grant.Revoked.IsZero() {
		return grant, tool.Errorf(tool.Conflict, "Grant %s was revoked by %s at %s",
			id, tool.VisibleName(grant.RevokedBy), grant.Revoked.Format(time.RFC3339))
	}
	now := g.now().UnixMilli()
	grant.Revoked, grant.RevokedBy = timeOf(now), by.User
	err = g.store.Do(ctx, func(tx *sql.Tx) error {
		_, err := execOne(ctx, tx, "UPDATE grants SET revoked = ?, revoked_by = ? WHERE id = ? AND revoked = 0", now, by.User, id)
		return err
	})
	if err != nil {
		return Grant{}, unwritten(ctx, err, "The end of grant %s could not be recorded, so it is still in force", id)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.covers, grant.key())
	return grant, nil
}

// insert makes the grant that an approver gives with the answer to a record, or
// returns the one that is in force already. The caller holds writing.
func (g *Grants) insert(ctx context.Context, tx *sql.Tx, r Record) (Grant, error) {
	if grant, ok := g.Covering(r.User, r.Plugin, r.Tool); ok {
		return grant, nil
	}
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM grants WHERE user = ? AND revoked = 0", r.User).Scan(&n); err != nil {
		return Grant{}, err
	}
	if n >= maxGrants {
		return Grant{}, tool.Errorf(tool.ResourceExhausted, "User %s has %d grants", tool.VisibleName(r.User), n).
			WithHint("revoke some, or approve once")
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Grant{}, fmt.Errorf("make the id of a grant: %w", err)
	}
	grant := Grant{
		ID: "gr_" + id.String(), User: r.User, Plugin: r.Plugin, Tool: r.Tool, Scope: Always,
		CreatedBy: r.DecidedBy, Approval: r.ID, Created: r.Decided,
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO grants (id, user, plugin, tool, scope, created_by, approval, created)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		grant.ID, grant.User, grant.Plugin, grant.Tool, grant.Scope, grant.CreatedBy, grant.Approval, grant.Created.UnixMilli())
	return grant, err
}

// put takes up a grant that is on disk and in force.
func (g *Grants) put(grant Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.covers[grant.key()] != nil {
		return // the answer confirmed a grant that was in force
	}
	c := &counted{grant: grant}
	g.covers[grant.key()], g.byID[grant.ID] = c, c
}

// query reads grants.
func (g *Grants) query(ctx context.Context, where string, args ...any) ([]Grant, error) {
	rows, err := g.store.Read().QueryContext(ctx, `SELECT id, user, plugin, tool, scope, created_by, approval, created,
		uses, last_used, revoked, revoked_by FROM grants `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read the grants: %w", err)
	}
	defer rows.Close()
	var grants []Grant
	for rows.Next() {
		var grant Grant
		var created, lastUsed, revoked int64
		if err := rows.Scan(&grant.ID, &grant.User, &grant.Plugin, &grant.Tool, &grant.Scope, &grant.CreatedBy, &grant.Approval,
			&created, &grant.Uses, &lastUsed, &revoked, &grant.RevokedBy); err != nil {
			return nil, fmt.Errorf("read the grants: %w", err)
		}
		grant.Created, grant.LastUsed, grant.Revoked = timeOf(created), timeOf(lastUsed), timeOf(revoked)
		grants = append(grants, grant)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the grants: %w", err)
	}
	return grants, nil
}
