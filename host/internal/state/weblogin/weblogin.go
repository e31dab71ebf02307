// Package weblogin keeps the logins of browsers. A credential with the role approver or admin asks
// for a [Link]. A browser that opens it in time, once, gets a secret for a cookie. The secret stands for
// that credential: it is valid as long as the credential is, with the same user and roles, from the
// same account. Of codes and secrets only digests are kept.
package weblogin

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// linkLife is how long a link can be opened.
	linkLife = 2 * time.Minute
	// maxLife and maxUnused end a login.
	maxLife   = 12 * time.Hour
	maxUnused = time.Hour
	// betweenUses is the least time between two writes that a login was used.
	betweenUses = time.Minute
	// maxLinks and maxLogins bound the links and logins of one credential, and all of them. One more
	// ends the oldest: of the credential, or of all.
	maxLinks, maxAllLinks   = 8, 64
	maxLogins, maxAllLogins = 16, 256
)

// ErrNotValid means that a link or a login is not valid, or not any more.
var ErrNotValid = errors.New("the login is not valid, or has ended")

// Options configure [Logins].
type Options struct {
	// Store keeps the logins; required.
	Store *store.Store
	// Tokens are the lists of credentials that logins stand for.
	Tokens []*auth.Tokens
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
}

// Logins keeps links and logins. Its methods may be called from any goroutine.
type Logins struct {
	store  *store.Store
	tokens []*auth.Tokens
	now    func() time.Time

	writing sync.Mutex // held across a change on disk and in memory; taken before mu
	mu      sync.Mutex // guards what follows
	links   map[string]*login
	logins  map[string]*login
}

// login is the state of a link or of a login, by the digest of its secret.
type login struct {
	digest        string
	token, sha256 string
	user          string
	roles         auth.Roles
	created, used time.Time
	written       time.Time // the use that is on disk
}

// Link is a login that can be opened once.
type Link struct {
	// Code is the secret of the link.
	Code    string
	Expires time.Time
}

// New returns the logins in a store. ctx bounds New only.
func New(ctx context.Context, opts Options) (*Logins, error) {
	if opts.Store == nil {
		return nil, errors.New("logins: no store is given")
	}
	l := &Logins{store: opts.Store, tokens: opts.Tokens, now: opts.Now, links: map[string]*login{}, logins: map[string]*login{}}
	if l.now == nil {
		l.now = time.Now
	}
	rows, err := l.store.Read().QueryContext(ctx, "SELECT sha256, token, token_sha256, user, roles, created, used FROM logins")
	if err != nil {
		return nil, fmt.Errorf("read the logins: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var one login
		var created, used int64
		if err := rows.Scan(&one.digest, &one.token, &one.sha256, &one.user, &one.roles, &created, &used); err != nil {
			return nil, fmt.Errorf("read the logins: %w", err)
		}
		one.created, one.used = time.UnixMilli(created), time.UnixMilli(used)
		one.written = one.used
		l.logins[one.digest] = &one
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the logins: %w", err)
	}
	return l, nil
}

// newSecret returns 256 random bits.
func newSecret() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// Offer returns a link for the credential of a caller.
func (l *Logins) Offer(by auth.Caller) (Link, error) {
	if by.Roles.Has(auth.Agent) || by.Token == "" || by.Issuer != "" {
		return Link{}, tool.Errorf(tool.PermissionDenied, "This credential cannot log in a browser").
			WithHint("use approver.key on the control socket, or a token of the configuration with the role approver or admin")
	}
	code := newSecret()
	now := l.now()
	one := &login{digest: auth.Digest(code), token: by.Token, sha256: by.Digest, user: by.User, roles: by.Roles, created: now, used: now}
	l.mu.Lock()
	defer l.mu.Unlock()
	for digest, old := range l.links {
		if !l.fresh(old) {
			delete(l.links, digest)
		}
	}
	for _, old := range surplus(l.links, one, maxLinks, maxAllLinks) {
		delete(l.links, old)
	}
	l.links[one.digest] = one
	return Link{Code: code, Expires: now.Add(linkLife).UTC()}, nil
}

// surplus returns the digests of the oldest entries that make room for one more: of its credential,
// and of all.
func surplus(of map[string]*login, one *login, most, all int) (over []string) {
	var own, every []*login
	for _, old := range of {
		every = append(every, old)
		if old.sha256 == one.sha256 {
			own = append(own, old)
		}
	}
	older := func(a, b *login) int { return a.created.Compare(b.created) }
	if len(own) >= most {
		over = append(over, slices.MinFunc(own, older).digest)
	}
	if len(every) >= all && len(over) == 0 {
		over = append(over, slices.MinFunc(every, older).digest)
	}
	return over
}

// fresh reports whether a link can still be opened.
func (l *Logins) fresh(link *login) bool {
	age := l.now().Sub(link.created)
	return age >= 0 && age < linkLife
}

// ended reports whether a login has ended by the clock, which may have been set back.
func (l *Logins) ended(one *login) bool {
	age, unused := l.now().Sub(one.created), l.now().Sub(one.used)
	return age < 0 || age >= maxLife || unused >= maxUnused
}

// Look returns whom a link logs in, without opening it. from is the account that asks. The error is
// [ErrNotValid] or an [*auth.AccountError].
func (l *Logins) Look(code string, from auth.Origin) (auth.Caller, error) {
	l.mu.Lock()
	link := l.links[auth.Digest(code)]
	l.mu.Unlock()
	if link == nil || !l.fresh(link) {
		return auth.Caller{}, ErrNotValid
	}
	return l.caller(link, from)
}

// Begin opens a link, and returns the secret of the new login. A link opens once. The error is that
// of [Logins.Look], or says that the disk cannot be written.
func (l *Logins) Begin(ctx context.Context, code string, from auth.Origin) (secret string, err error) {
	if _, err := l.Look(code, from); err != nil {
		return "", err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	link := l.links[auth.Digest(code)]
	delete(l.links, auth.Digest(code))
	l.mu.Unlock()
	if link == nil { // opened by another request meanwhile
		return "", ErrNotValid
	}
	secret = newSecret()
	one := *link
	one.digest, one.created = auth.Digest(secret), l.now()
	one.used, one.written = one.created, one.created
	var over []string
	l.mu.Lock()
	for digest, old := range l.logins {
		if l.ended(old) {
			over = append(over, digest)
		}
	}
	over = append(over, surplus(l.logins, &one, maxLogins, maxAllLogins)...)
	l.mu.Unlock()
	err = l.store.Do(ctx, func(tx *sql.Tx) error {
		if err := remove(ctx, tx, over); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO logins (sha256, token, token_sha256, user, roles, created, used) VALUES (?, ?, ?, ?, ?, ?, ?)",
			one.digest, one.token, one.sha256, one.user, one.roles, one.created.UnixMilli(), one.used.UnixMilli())
		return err
	})
	if err != nil {
		return "", fmt.Errorf("record the login: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, digest := range over {
		delete(l.logins, digest)
	}
	l.logins[one.digest] = &one
	return secret, nil
}

func remove(ctx context.Context, tx *sql.Tx, digests []string) error {
	for _, digest := range digests {
		if _, err := tx.ExecContext(ctx, "DELETE FROM logins WHERE sha256 = ?", digest); err != nil {
			return err
		}
	}
	return nil
}

// Caller returns whom the secret of a login stands for, by the credentials in force. used says that
// a person uses the login now, which keeps it for another hour. The error is [ErrNotValid] or an
// [*auth.AccountError].
func (l *Logins) Caller(ctx context.Context, secret string, from auth.Origin, used bool) (auth.Caller, error) {
	l.mu.Lock()
	one := l.logins[auth.Digest(secret)]
	over := one == nil || l.ended(one)
	l.mu.Unlock()
	if over {
		return auth.Caller{}, ErrNotValid
	}
	caller, err := l.caller(one, from)
	if err == nil && used {
		l.use(ctx, one)
	}
	return caller, err
}

// caller returns the caller of the credential that a login stands for, if it has the same user and
// roles as when the login was asked for.
func (l *Logins) caller(one *login, from auth.Origin) (auth.Caller, error) {
	for _, tokens := range l.tokens {
		caller, ok, err := tokens.Again(one.token, one.sha256, from)
		switch {
		case err != nil:
			return auth.Caller{}, err
		case ok && caller.User == one.user && caller.Roles == one.roles:
			return caller, nil
		}
	}
	return auth.Caller{}, ErrNotValid
}

// use records that a login was used. What cannot be written ends it too early after a restart, at
// worst.
func (l *Logins) use(ctx context.Context, one *login) {
	l.mu.Lock()
	one.used = l.now()
	write, digest, at := one.used.Sub(one.written) >= betweenUses, one.digest, one.used
	if write {
		one.written = at
	}
	l.mu.Unlock()
	if write {
		_ = l.store.Do(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE logins SET used = ? WHERE sha256 = ?", at.UnixMilli(), digest)
			return err
		})
	}
}

// End ends the login with a secret, if there is one.
func (l *Logins) End(ctx context.Context, secret string) error {
	digest := auth.Digest(secret)
	_, err := l.end(ctx, func(one *login) bool { return one.digest == digest })
	return err
}

// EndAll ends all logins of a caller's credential, and its links. It returns how many logins there
// were.
func (l *Logins) EndAll(ctx context.Context, by auth.Caller) (int, error) {
	return l.end(ctx, func(one *login) bool { return one.token == by.Token && one.sha256 == by.Digest })
}

// end ends logins and links, in memory first: a browser must be out even if the disk is full.
func (l *Logins) end(ctx context.Context, which func(*login) bool) (int, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	var ended []string
	l.mu.Lock()
	for digest, one := range l.logins {
		if which(one) {
			ended = append(ended, digest)
			delete(l.logins, digest)
		}
	}
	for digest, link := range l.links {
		if which(link) {
			delete(l.links, digest)
		}
	}
	l.mu.Unlock()
	if len(ended) == 0 {
		return 0, nil
	}
	err := l.store.Do(ctx, func(tx *sql.Tx) error { return remove(ctx, tx, ended) })
	if err != nil {
		return len(ended), fmt.Errorf("record that logins have ended: until the disk can be written, a restarted host would accept them: %w", err)
	}
	return len(ended), nil
}
