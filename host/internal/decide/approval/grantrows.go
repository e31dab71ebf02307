package approval

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// lasting is the condition for a grant that may be in force at :now.
const lasting = "revoked = 0 AND (expires = 0 OR expires > :now) AND (max_uses = 0 OR uses < max_uses)"

// insert adds the grants that an approver gives with the answer to a record. If an equal
// grant without an end is in force already, insert uses that one. The caller holds
// writing.
func (g *Grants) insert(ctx context.Context, tx *sql.Tx, grants []Grant) error {
	user, now := grants[0].User, sql.Named("now", g.now().UnixMilli())
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM grants WHERE user = :user AND "+lasting, sql.Named("user", user), now).Scan(&n); err != nil {
		return err
	}
	for i := range grants {
		grant := &grants[i]
		if same := g.same(grant); same != nil {
			covers, given := grant.Covers, grant.Given
			*grant = same.grant
			grant.Covers, grant.Given, grant.State = covers, given, GrantActive
			continue
		}
		if n++; n > maxGrants {
			return tool.Errorf(tool.ResourceExhausted, "User %s has %d grants", tool.VisibleName(user), maxGrants).
				WithHint("revoke some, or approve once")
		}
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("make the id of a grant: %w", err)
		}
		grant.ID = "gr_" + id.String()
		pattern, err := writePattern(grant.Command)
		if err != nil {
			return err
		}
		given, err := writeBasis(grant.Given)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO grants (id, user, plugin, tool, path, command, given, session, expires, max_uses, created_by, approval, created)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			grant.ID, grant.User, grant.Plugin, grant.Tool, grant.Path, pattern, given, grant.Session, msOf(grant.Expires), grant.MaxUses,
			grant.CreatedBy, grant.Approval, grant.Created.UnixMilli())
		if err != nil {
			return err
		}
	}
	return nil
}

// query reads grants.
func (g *Grants) query(ctx context.Context, where string, args ...any) ([]Grant, error) {
	rows, err := g.store.Read().QueryContext(ctx, `SELECT id, user, plugin, tool, path, command, given, session, expires, max_uses,
		created_by, approval, created, uses, last_used, revoked, revoked_by, confirmed, confirmed_by FROM grants `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read the grants: %w", err)
	}
	defer rows.Close()
	var grants []Grant
	for rows.Next() {
		grant, err := readGrant(rows)
		if err != nil {
			g.logger.Error("a grant is left out", "grant", grant.ID, "error", err)
			continue
		}
		grants = append(grants, grant)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the grants: %w", err)
	}
	return grants, nil
}

// readGrant returns the grant of one row.
func readGrant(rows *sql.Rows) (Grant, error) {
	var grant Grant
	var pattern, given string
	var created, expires, lastUsed, revoked, confirmed int64
	if err := rows.Scan(&grant.ID, &grant.User, &grant.Plugin, &grant.Tool, &grant.Path, &pattern, &given, &grant.Session, &expires, &grant.MaxUses,
		&grant.CreatedBy, &grant.Approval, &created, &grant.Uses, &lastUsed, &revoked, &grant.RevokedBy,
		&confirmed, &grant.ConfirmedBy); err != nil {
		return grant, err
	}
	if pattern != "" {
		var kept keptPattern
		if err := json.Unmarshal([]byte(pattern), &kept); err != nil || len(kept.Words) == 0 {
			return grant, fmt.Errorf("its command is damaged: %w", err)
		}
		grant.Command = &command.Pattern{Words: kept.Words, Open: kept.Open}
	}
	if given != "" {
		if err := json.Unmarshal([]byte(given), &grant.Given); err != nil {
			return grant, fmt.Errorf("what it was given for is damaged: %w", err)
		}
	}
	grant.Created, grant.Expires, grant.LastUsed = timeOf(created), timeOf(expires), timeOf(lastUsed)
	grant.Revoked, grant.Confirmed = timeOf(revoked), timeOf(confirmed)
	grant.Covers = grant.describe()
	return grant, nil
}

// keptPattern is a [command.Pattern] as the store keeps it.
type keptPattern struct {
	Words []string `json:"words"`
	Open  bool     `json:"open,omitempty"`
}

// writePattern returns a pattern as the store keeps it; "" for nil.
func writePattern(p *command.Pattern) (string, error) {
	if p == nil {
		return "", nil
	}
	text, err := json.Marshal(keptPattern{p.Words, p.Open})
	return string(text), err
}

// writeBasis returns a basis as the store keeps it; "" for the zero one.
func writeBasis(b catalog.Basis) (string, error) {
	if b.IsZero() {
		return "", nil
	}
	text, err := json.Marshal(b)
	return string(text), err
}

// msOf is the inverse of [timeOf].
func msOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
