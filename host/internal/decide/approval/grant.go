package approval

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Grant is a standing answer: the calls of a user that it covers run without a question
// where the policy allows it.
type Grant struct {
	// ID is the grant's own, "gr_" and a UUIDv7.
	ID     string `json:"id"`
	User   string `json:"user"`
	Plugin string `json:"plugin"`
	// Tool is the tool's name; "" means every tool of the plugin.
	Tool string `json:"tool,omitempty"`
	// Path limits the grant to calls whose paths are all this one, absolute and clean,
	// or below it.
	Path string `json:"path,omitempty"`
	// Command is the shell command that the grant covers. A grant without it covers only
	// calls without commands. A call runs if each of its commands is covered.
	Command *command.Pattern `json:"command,omitempty"`
	// Host is the destination "host:port" of a grant for connections; "" for one of calls.
	Host string `json:"host,omitempty"`
	// Covers describes what the grant covers.
	Covers string `json:"covers"`
	// Given is the program and the tools that the grant was given for: it covers no call
	// of another program, or of a tool with another schema or tier. It is zero for grants
	// of versions that did not record it.
	Given catalog.Basis `json:"given,omitzero"`
	// Paused is why the grant covers nothing now; nil if it is not paused.
	Paused *Pause `json:"paused,omitempty"`
	// Session, Expires and MaxUses end the grant: with a session of its user, at a time,
	// after a number of calls. Zero means no end.
	Session string    `json:"session,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	MaxUses int64     `json:"max_uses,omitempty"`
	// State is whether the grant is in force, or why it is not.
	State GrantState `json:"state"`
	// CreatedBy is the approver, and Approval is the id of the record whose answer gave
	// the grant.
	CreatedBy string    `json:"created_by"`
	Approval  string    `json:"approval"`
	Created   time.Time `json:"created"`
	// Uses and LastUsed may lack the last seconds before the host was killed, except for
	// a grant with MaxUses.
	Uses     int64     `json:"uses"`
	LastUsed time.Time `json:"last_used,omitzero"`
	// Revoked is zero if the grant was not revoked.
	Revoked   time.Time `json:"revoked,omitzero"`
	RevokedBy string    `json:"revoked_by,omitempty"`
	// Confirmed is when the grant was last confirmed; zero if never.
	Confirmed   time.Time `json:"confirmed,omitzero"`
	ConfirmedBy string    `json:"confirmed_by,omitempty"`
}

// GrantState is the state of a grant.
type GrantState string

// The states of a grant.
const (
	GrantActive GrantState = "active"
	// GrantPaused is the state of a grant that was given for another program or another
	// tool: it takes effect again once it is confirmed.
	GrantPaused  GrantState = "paused"
	GrantRevoked GrantState = "revoked"
	GrantExpired GrantState = "expired"
	// GrantUsed is the state of a grant without uses left.
	GrantUsed GrantState = "used"
	// GrantEnded is the state of a grant whose session has ended.
	GrantEnded GrantState = "ended"
)

// Subject is the part of a call that a grant can cover, in addition to its tool.
type Subject struct {
	// Folder is the base of relative paths; "" if there is none.
	Folder string `json:"folder,omitempty"`
	// Paths are the paths that the arguments name, absolute and clean: as written, and
	// with symbolic links resolved.
	Paths []string `json:"paths,omitempty"`
	// Commands are the shell commands that grants must cover.
	Commands []Command `json:"commands,omitempty"`
	// Host is the destination "host:port" of a connection; then the others are empty.
	Host string `json:"host,omitempty"`
}

// Connect is the tool of a question about a connection. No plugin's tool has this name.
const Connect = "network.connect"

// Command is a shell command of a [Subject].
type Command struct {
	// Words and Least are fields of [command.Segment].
	Words []string `json:"words"`
	Least int      `json:"least"`
}

// allWithin reports whether there are paths, and each is folder or below it.
func allWithin(paths []string, folder string) bool {
	return len(paths) > 0 && !slices.ContainsFunc(paths, func(name string) bool { return !policy.Within(name, folder) })
}

// describe describes what the grant covers.
func (g *Grant) describe() string {
	by, where := g.Tool, ""
	if g.Tool == "" {
		by = "every tool of " + g.Plugin
	}
	switch {
	case g.Host != "":
		return "connections of " + g.Plugin + " to " + g.Host
	case g.Path != "" && g.Command != nil:
		where = ", in " + g.Path
	case g.Path != "":
		where = ", of paths in " + g.Path
	}
	switch {
	case g.Command == nil:
		return "calls of " + by + where
	case g.Command.Open:
		return "commands of " + by + " that are " + command.Pattern{Words: g.Command.Words}.String() + " and plain words" + where
	}
	return "the command " + g.Command.String() + " of " + by + where
}

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
		_, err = tx.ExecContext(ctx, `INSERT INTO grants (id, user, plugin, tool, path, host, command, given, session, expires, max_uses, created_by, approval, created)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			grant.ID, grant.User, grant.Plugin, grant.Tool, grant.Path, grant.Host, pattern, given, grant.Session, msOf(grant.Expires), grant.MaxUses,
			grant.CreatedBy, grant.Approval, grant.Created.UnixMilli())
		if err != nil {
			return err
		}
	}
	return nil
}

// query reads grants.
func (g *Grants) query(ctx context.Context, where string, args ...any) ([]Grant, error) {
	rows, err := g.store.Read().QueryContext(ctx, `SELECT id, user, plugin, tool, path, host, command, given, session, expires, max_uses,
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
	if err := rows.Scan(&grant.ID, &grant.User, &grant.Plugin, &grant.Tool, &grant.Path, &grant.Host, &pattern, &given, &grant.Session, &expires, &grant.MaxUses,
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
			return grant, fmt.Errorf("the record of the program and tools that it was given for is damaged: %w", err)
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
