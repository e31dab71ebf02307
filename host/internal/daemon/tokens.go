package daemon

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

// agentName is what the host's own token for agents on this machine is called.
const agentName = "local"

// buildTokens makes the tokens that count over the network: the host's own, and those
// of the configuration.
func (d *Daemon) buildTokens(ctx context.Context) (err error) {
	cfg := d.opts.Config
	if d.revoked, err = readRevoked(ctx, d.parts.store); err != nil {
		return err
	}
	if err := d.makeAgent(cfg.StateDir); err != nil {
		return err
	}
	d.parts.tokens, err = auth.NewTokens(d.withAgent(cfg.Tokens), d.revoked...)
	return err
}

// makeAgent takes up the host's own token, and makes another one in the place of one
// that is revoked.
func (d *Daemon) makeAgent(stateDir string) error {
	secret, err := auth.EnsureKey(stateDir, auth.AgentKey)
	if err == nil && d.isRevoked(auth.Digest(secret)) {
		secret, err = auth.RenewKey(stateDir, auth.AgentKey)
	}
	if err != nil {
		return err
	}
	d.agent = auth.Token{Name: agentName, SHA256: auth.Digest(secret), User: auth.LocalUser(d.opts.Config.LocalUser), Roles: auth.Agent}
	return nil
}

// withAgent adds the host's own token for agents on this machine.
func (d *Daemon) withAgent(tokens []auth.Token) []auth.Token {
	return append([]auth.Token{d.agent}, tokens...)
}

func (d *Daemon) isRevoked(digest string) bool {
	for _, r := range d.revoked {
		if r.SHA256 == digest {
			return true
		}
	}
	return false
}

// RevokeToken makes the tokens with a name end after a grace, for good. Without one,
// what they have under way ends with them. The host's own is replaced at once.
func (d *Daemon) RevokeToken(ctx context.Context, name string, grace time.Duration, by auth.Caller) error {
	ctx = context.WithoutCancel(ctx) // whoever asks may leave: what has begun is done whole
	d.reloading.Lock()
	defer d.reloading.Unlock()
	digests := d.parts.tokens.Digests(name)
	if len(digests) == 0 {
		return tool.Errorf(tool.NotFound, "there is no token %q that counts", name).WithHint("toolhost token list shows the tokens")
	}
	at := time.Now().Add(grace).UTC().Truncate(time.Millisecond)
	revoked, err := saveRevoked(ctx, d.parts.store, name, digests, at)
	if err != nil {
		return err
	}
	d.revoked = revoked
	what := fmt.Sprintf("the token %q is revoked", name)
	if grace > 0 {
		what += " from " + at.Format(time.RFC3339) + " on"
	}
	d.opts.Logger.Warn("a token is revoked", "token", name, "from", at.Format(time.RFC3339), "by", by.User)
	if err := d.parts.journal.ChangeBy(ctx, by.User, what); err != nil {
		d.opts.Logger.Error("the journal does not tell that a token is revoked", "token", name, "error", err)
	}
	cfg := d.config.Load()
	var unmade error // the revoked one ends all the same
	if name == agentName {
		unmade = d.makeAgent(cfg.StateDir)
	}
	if err := d.parts.tokens.Replace(d.withAgent(cfg.Tokens), d.revoked...); err != nil {
		return err
	}
	// With no grace, no secret of this name counts that has calls under way.
	d.parts.pipeline.Revoke(func(c auth.Caller) bool { return d.parts.tokens.Count(c) && (c.Token != name || grace > 0) })
	return unmade
}

// readRevoked returns the tokens that were revoked.
func readRevoked(ctx context.Context, s *store.Store) (revoked []auth.Revocation, err error) {
	rows, err := s.Read().QueryContext(ctx, "SELECT sha256, name, revoked FROM revoked_tokens")
	if err != nil {
		return nil, fmt.Errorf("read which tokens are revoked: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var r auth.Revocation
		var at int64
		if err := rows.Scan(&r.SHA256, &r.Name, &at); err != nil {
			return nil, fmt.Errorf("read which tokens are revoked: %w", err)
		}
		r.At = time.UnixMilli(at).UTC()
		revoked = append(revoked, r)
	}
	return revoked, rows.Err()
}

// saveRevoked writes that tokens end at a time, unless they end sooner, and returns all
// that are revoked.
func saveRevoked(ctx context.Context, s *store.Store, name string, digests []string, at time.Time) ([]auth.Revocation, error) {
	err := s.Do(ctx, func(tx *sql.Tx) error {
		for _, digest := range digests {
			if _, err := tx.ExecContext(ctx, `INSERT INTO revoked_tokens (sha256, name, revoked) VALUES (?, ?, ?)
				ON CONFLICT (sha256) DO UPDATE SET revoked = min(revoked, excluded.revoked)`, digest, name, at.UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("record that a token is revoked: %w", err)
	}
	return readRevoked(ctx, s)
}
