package approval

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxPaused bounds the paused grants that are named for a call.
const maxPaused = 5

// maxChanges bounds the changes that are named for each.
const maxChanges = 10

// Pause is why a grant is paused.
type Pause struct {
	// Changes are the differences since the grant was given.
	Changes []string `json:"changes"`
	// Basis is the digest of the program and tools that the grant would be valid for once
	// it is confirmed; "" if its tool is not offered now.
	Basis string `json:"basis,omitempty"`

	now catalog.Basis
}

// PausedGrant is a grant that would cover a call if it were not paused.
type PausedGrant struct {
	ID      string   `json:"id"`
	Changes []string `json:"changes"`
}

// unrecorded is why a grant of an earlier version is paused.
const unrecorded = "an earlier version of the host did not record the program and tools that it was given for"

// lasts reports whether a grant in this state may still cover calls.
func (s GrantState) lasts() bool { return s == GrantActive || s == GrantPaused }

// pause sets a grant in force to paused if its plugin's current program or tools differ from
// those that it was given for. It does nothing if they are unknown: then there are no calls.
func (g *Grant) pause(now catalog.Basis) {
	if now.IsZero() || g.Given.Holds(now, g.Tool) && offers(now, g.Tool) {
		return
	}
	p := Pause{Changes: changesOf(g.Given, now, g.Tool)}
	if offers(now, g.Tool) {
		p.now = now.Of(g.Tool)
		p.Basis = p.now.Digest()
	}
	g.State, g.Paused = GrantPaused, &p
}

// offers reports whether a tool is offered, or any tool if name is "".
func offers(now catalog.Basis, name string) bool {
	_, ok := now.Tools[name]
	return ok || (name == "" || name == Connect) && len(now.Tools) > 0
}

// changesOf describes why a grant is not valid now.
func changesOf(given, now catalog.Basis, name string) []string {
	if given.IsZero() {
		return []string{unrecorded}
	}
	return given.Changes(now.Of(name))
}

// notePaused adds a paused grant that would cover the call. Grants.mu is held.
func (c *Call) notePaused(paused *counted) {
	known := slices.ContainsFunc(c.Paused, func(p PausedGrant) bool { return p.ID == paused.grant.ID })
	if known || len(c.Paused) >= maxPaused {
		return
	}
	changes := changesOf(paused.given, c.Basis, paused.grant.Tool)
	if more := len(changes) - maxChanges; more > 0 {
		changes = append(changes[:maxChanges], fmt.Sprintf("and %d more", more))
	}
	c.Paused = append(c.Paused, PausedGrant{paused.grant.ID, changes})
}

// pauses returns warnings about paused grants that would let the call run.
func (r Record) pauses() []string {
	var all []string
	for _, p := range r.Paused {
		all = append(all, fmt.Sprintf("grant %s would let this call run, but is paused: %s", p.ID, seenLine(strings.Join(p.Changes, "; "))))
	}
	return all
}

// Confirm makes a paused grant valid for the current program and tools of its plugin. basis is
// their digest, which the approver saw in [Grant.Paused]; if it has changed, the error is a
// [tool.Conflict]. Approvers can confirm the grants of the users they approve for; for any
// other grant the error is [tool.NotFound].
func (g *Grants) Confirm(ctx context.Context, id, basis string, by auth.Caller) (Grant, error) {
	if by.Roles.Has(auth.Agent) || !by.Roles.Has(auth.Approver) {
		return Grant{}, tool.Errorf(tool.PermissionDenied, "Only an approver confirms grants")
	}
	g.writing.Lock()
	defer g.writing.Unlock()
	grant, err := g.find(ctx, id)
	switch {
	case err != nil:
		return Grant{}, err
	case !by.MayApprove(grant.User):
		return Grant{}, noGrantWith(id)
	}
	if err := grant.confirmable(basis); err != nil {
		return grant, err
	}
	now, at := grant.Paused.now, g.now().UnixMilli()
	given, err := writeBasis(now)
	if err != nil {
		return Grant{}, err
	}
	err = g.store.Do(ctx, func(tx *sql.Tx) error {
		_, err := execOne(ctx, tx, "UPDATE grants SET given = ?, confirmed = ?, confirmed_by = ? WHERE id = ? AND revoked = 0", given, at, by.User, id)
		return err
	})
	if err != nil {
		return Grant{}, unwritten(ctx, err, "The confirmation of grant %s could not be recorded, so it stays paused", id)
	}
	grant.State, grant.Paused, grant.Given = GrantActive, nil, now
	grant.Confirmed, grant.ConfirmedBy = timeOf(at), by.User
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.byID[id]; c != nil {
		c.given = now
	}
	return grant, nil
}

// confirmable returns why an approver who saw basis cannot confirm a grant; nil if it can.
func (g *Grant) confirmable(basis string) error {
	switch {
	case !g.State.lasts():
		return g.over()
	case g.Paused == nil:
		return tool.Errorf(tool.Conflict, "Grant %s is not paused", g.ID)
	case g.Paused.Basis == "":
		return tool.Errorf(tool.Conflict, "Grant %s cannot be confirmed: its tool is not offered now", g.ID)
	case basis == "":
		return tool.Errorf(tool.InvalidArgument, "The confirmation of grant %s lacks the basis that it is for", g.ID).
			WithHint("list the grant, and send the basis that it has with paused")
	case basis != g.Paused.Basis:
		return tool.Errorf(tool.Conflict, "Grant %s has changed since it was shown", g.ID).WithHint("list it again, then confirm")
	}
	return nil
}

// over returns the error for a grant that has ended.
func (g *Grant) over() error {
	if g.State == GrantRevoked {
		return tool.Errorf(tool.Conflict, "Grant %s was revoked by %s at %s",
			g.ID, tool.VisibleName(g.RevokedBy), g.Revoked.Format(time.RFC3339))
	}
	return tool.Errorf(tool.Conflict, "Grant %s is no longer in force: its state is %s", g.ID, g.State)
}

// noGrantWith returns the error for an id of no grant that the caller may see.
func noGrantWith(id string) error {
	return tool.Errorf(tool.NotFound, "No grant %s", tool.VisibleName(excerpt.Of(id, maxName))).WithHint("toolhost grants list shows those in force")
}

// find returns a grant with its state, or the error of [noGrantWith].
func (g *Grants) find(ctx context.Context, id string) (Grant, error) {
	found, err := g.query(ctx, "WHERE id = ?", id)
	if err != nil {
		return Grant{}, err
	}
	if len(found) == 0 {
		return Grant{}, noGrantWith(id)
	}
	return g.asItIs(found[0]), nil
}
