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
	if err := d.rememberEnded(ctx); err != nil {
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
	if err := saveRevoked(ctx, d.parts.store, name, digests, at, grace <= 0); err != nil {
		return err
	}
	if err := d.readRevoked(ctx); err != nil {
		return err
	}
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
	d.parts.pipeline.Operations().Revoke(d.parts.tokens.Count)
	d.pokeTokens()
	return unmade
}

// pokeTokens has keepTokens see when the next token ends by now.
func (d *Daemon) pokeTokens() {
	select {
	case d.tokensChanged <- struct{}{}:
	default:
	}
}

// maxNap bounds how long keepTokens sleeps: the clock may be set, and a machine that
// sleeps does not count.
const maxNap = time.Minute

// keepTokens ends the calls of tokens that expire, or whose grace is over, until ctx ends.
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
			d.endTokens(ctx) // also one that ended between two looks
		}
	}
}

// endTokens ends the calls of tokens that count no more, and remembers those whose grace
// is over.
func (d *Daemon) endTokens(ctx context.Context) {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	d.parts.pipeline.Operations().Revoke(d.parts.tokens.Count)
	if err := d.rememberEnded(context.WithoutCancel(ctx)); err != nil {
		d.opts.Logger.Error("a host that starts with a clock that was set back would take revoked tokens", "error", err)
		return
	}
	if err := d.parts.tokens.Replace(d.withAgent(d.config.Load().Tokens), d.revoked...); err != nil {
		d.opts.Logger.Error("the tokens are as before", "error", err)
	}
}

// rememberEnded reads which tokens are revoked, and writes down those that are over: they
// stay so if the clock is set back.
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

// readRevoked reads the tokens that were revoked. What a clock has measured of their grace
// counts on.
func (d *Daemon) readRevoked(ctx context.Context) error {
	rows, err := d.parts.store.Read().QueryContext(ctx, "SELECT sha256, name, revoked, ended FROM revoked_tokens")
	if err != nil {
		return fmt.Errorf("read which tokens are revoked: %w", err)
	}
	defer rows.Close()
	var revoked []auth.Revocation
	for rows.Next() {
		var r auth.Revocation
		var at int64
		if err := rows.Scan(&r.SHA256, &r.Name, &at, &r.Ended); err != nil {
			return fmt.Errorf("read which tokens are revoked: %w", err)
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
		return fmt.Errorf("read which tokens are revoked: %w", err)
	}
	d.revoked = revoked
	return nil
}

// saveRevoked writes that tokens end at a time, unless they end sooner, or that they have.
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
