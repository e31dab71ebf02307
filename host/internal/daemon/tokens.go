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

// buildTokens makes the tokens that are valid over the network: the host's own and those of
// the configuration.
func (d *Daemon) buildTokens(ctx context.Context) (err error) {
	cfg := d.opts.Config
	if err := d.rememberEnded(ctx); err != nil {
		return err
	}
	if err := d.makeAgent(cfg.StateDir); err != nil {
		return err
	}
	d.parts.tokens, err = auth.NewTokens(d.withAgent(cfg.Tokens), d.revoked...)
	return err
}

// makeAgent loads the host's own token, and replaces it if it is revoked.
func (d *Daemon) makeAgent(stateDir string) error {
	secret, err := auth.EnsureKey(stateDir, auth.AgentKey)
	if err == nil && d.isRevoked(auth.Digest(secret)) {
		secret, err = auth.RenewKey(stateDir, auth.AgentKey)
	}
	if err != nil {
		return err
	}
	d.agent = auth.Token{Name: auth.LocalToken, SHA256: auth.Digest(secret), User: auth.LocalUser(d.opts.Config.LocalUser), Roles: auth.Agent}
	return nil
}

// withAgent adds the host's own token.
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

// RevokeToken revokes the tokens with a name after a grace period, permanently. Without a
// grace period it also ends their running calls. The host's own token is replaced
// immediately.
func (d *Daemon) RevokeToken(ctx context.Context, name string, grace time.Duration, by auth.Caller) error {
	ctx = context.WithoutCancel(ctx) // the caller may leave, but the revocation is completed
	d.reloading.Lock()
	defer d.reloading.Unlock()
	digests := d.parts.tokens.Digests(name)
	if len(digests) == 0 {
		return tool.Errorf(tool.NotFound, "no token is named %q, or it has been revoked", name).WithHint("toolhost token list shows the tokens")
	}
	at := time.Now().Add(grace).UTC().Truncate(time.Millisecond)
	if err := saveRevoked(ctx, d.parts.store, name, digests, at, grace <= 0); err != nil {
		return err
	}
	if err := d.readRevoked(ctx); err != nil {
		return err
	}
	what := fmt.Sprintf("the token %q is revoked", name)
	if grace > 0 {
		what += " from " + at.Format(time.RFC3339)
	}
	d.opts.Logger.Warn("a token is revoked", "token", name, "from", at.Format(time.RFC3339), "by", by.User)
	if err := d.parts.journal.ChangeBy(ctx, by.User, "", what); err != nil {
		d.opts.Logger.Error("the journal cannot record that a token is revoked", "token", name, "error", err)
	}
	cfg := d.config.Load()
	var unmade error // the old one is revoked nevertheless
	if name == auth.LocalToken {
		unmade = d.makeAgent(cfg.StateDir)
	}
	if err := d.parts.tokens.Replace(d.withAgent(cfg.Tokens), d.revoked...); err != nil {
		return err
	}
	d.parts.pipeline.Operations().Revoke(d.parts.counts)
	d.pokeTokens()
	return unmade
}

// counts reports whether the credential of a caller is still valid.
func (p *parts) counts(caller auth.Caller) bool {
	if caller.Issuer != "" {
		return p.issuers.Count(caller)
	}
	return p.tokens.Count(caller)
}

// pokeTokens makes keepTokens compute again when the next token ends.
func (d *Daemon) pokeTokens() {
	select {
	case d.tokensChanged <- struct{}{}:
	default:
	}
}

// maxNap bounds how long keepTokens sleeps: the clock may be set, or the machine may be
// suspended.
const maxNap = time.Minute

// keepTokens ends the calls of tokens that expire or whose grace period ends, until ctx ends.
func (d *Daemon) keepTokens(ctx context.Context) {
	timer := time.NewTimer(maxNap)
	defer timer.Stop()
	for {
		next := d.parts.tokens.NextEnd()
		if timer.Stop(); !next.IsZero() {
			timer.Reset(min(maxNap, time.Until(next)))
		}
		select {
		case <-ctx.Done():
			return
		case <-d.tokensChanged:
		case <-timer.C:
			d.endTokens(ctx)
		}
	}
}

// endTokens ends the calls of invalid tokens, and records those whose grace period is over.
func (d *Daemon) endTokens(ctx context.Context) {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	d.parts.pipeline.Operations().Revoke(d.parts.counts)
	if err := d.rememberEnded(context.WithoutCancel(ctx)); err != nil {
		d.opts.Logger.Error("if the clock is set back, a restarted host would accept revoked tokens", "error", err)
		return
	}
	if err := d.parts.tokens.Replace(d.withAgent(d.config.Load().Tokens), d.revoked...); err != nil {
		d.opts.Logger.Error("the tokens cannot be replaced", "error", err)
	}
}

// rememberEnded reads the revoked tokens, and records those whose revocation has taken
// effect, so that they stay invalid if the clock is set back.
func (d *Daemon) rememberEnded(ctx context.Context) error {
	if err := d.readRevoked(ctx); err != nil {
		return err
	}
	for i, r := range d.revoked {
		if r.Ended || !r.Over() {
			continue
		}
		if err := saveRevoked(ctx, d.parts.store, r.Name, []string{r.SHA256}, r.At, true); err != nil {
			return err
		}
		d.revoked[i].Ended = true
	}
	return nil
}

// readRevoked reads the revoked tokens. It keeps what a monotonic clock has measured of their
// grace periods.
func (d *Daemon) readRevoked(ctx context.Context) error {
	rows, err := d.parts.store.Read().QueryContext(ctx, "SELECT sha256, name, revoked, ended FROM revoked_tokens")
	if err != nil {
		return fmt.Errorf("read the revoked tokens: %w", err)
	}
	defer rows.Close()
	var revoked []auth.Revocation
	for rows.Next() {
		var r auth.Revocation
		var at int64
		if err := rows.Scan(&r.SHA256, &r.Name, &at, &r.Ended); err != nil {
			return fmt.Errorf("read the revoked tokens: %w", err)
		}
		r.At = time.UnixMilli(at).UTC()
		r.Ends = time.Now().Add(time.Until(r.At))
		for _, before := range d.revoked {
			if before.SHA256 == r.SHA256 && before.At.Equal(r.At) {
				r.Ends, r.Ended = before.Ends, r.Ended || before.Ended
			}
		}
		revoked = append(revoked, r)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the revoked tokens: %w", err)
	}
	d.revoked = revoked
	return nil
}

// saveRevoked records that tokens end at a time, unless they end sooner, or that they have
// ended.
func saveRevoked(ctx context.Context, s *store.Store, name string, digests []string, at time.Time, ended bool) error {
	err := s.Do(ctx, func(tx *sql.Tx) error {
		for _, digest := range digests {
			if _, err := tx.ExecContext(ctx, `INSERT INTO revoked_tokens (sha256, name, revoked, ended) VALUES (?, ?, ?, ?)
				ON CONFLICT (sha256) DO UPDATE SET revoked = min(revoked, excluded.revoked), ended = max(ended, excluded.ended)`,
				digest, name, at.UnixMilli(), ended); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record that a token is revoked: %w", err)
	}
	return nil
}

// AgentToken returns the token of agents of the host with a state directory. If no host has
// run yet, AgentToken makes the token, as the host would.
func AgentToken(stateDir string) (string, error) {
	if err := store.MakeDir(stateDir); err != nil {
		return "", err
	}
	return auth.EnsureKey(stateDir, auth.AgentKey)
}
