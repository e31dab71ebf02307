// Package oidc turns access tokens of OpenID Connect issuers into callers. A token is a JWT that
// one of the configured issuers has signed for this host.
//
// The keys of an issuer are fetched when a token needs them, never at the start, so that a host
// starts while its issuer is down. Without keys no token is valid: an outage never lets anyone in.
package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	strict "github.com/go-jose/go-jose/v4/json" // refuses names that occur twice; names are case-sensitive
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// Issuer is an OpenID Connect issuer whose access tokens are valid. The configuration has checked
// all fields.
type Issuer struct {
	// Name is the name in the configuration. It is a part of the names of the issuer's users, and
	// differs from those of other issuers and of tokens.
	Name string
	// URL is the issuer's identifier, exactly as in its tokens; see [CheckURL].
	URL string
	// Audience is what the claim aud of its tokens must have.
	Audience string
	// UserClaim and GroupsClaim are the claims with the user and the user's groups. Dots lead into
	// claims that are objects, such as "realm_access.roles", unless a claim has the whole name.
	UserClaim, GroupsClaim string
	// Roles are the roles of the members of groups, by the issuer's names of them. A user without a role is an agent if no group
	// has that role.
	Roles map[string]auth.Roles
	// Scopes are what clients should ask the issuer for; the host does not check them.
	Scopes []string
}

// Qualified returns the name here of a user or group of the issuer. Its end is the name of the
// issuer, so that no other issuer can name the same.
func (i Issuer) Qualified(name string) string { return name + "@" + i.Name }

// Has reports whether a name is one of a user of the issuer.
func (i Issuer) Has(user string) bool { return strings.HasSuffix(user, "@"+i.Name) }

// audiences returns the audience in all its forms. "http://example.com" and "http://example.com/"
// are one address (RFC 3986, section 6.2.3), and clients write either into the parameter "resource".
func (i Issuer) audiences() jwt.Audience {
	bare := strings.TrimSuffix(i.Audience, "/")
	at, err := url.Parse(bare)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" || bare != at.Scheme+"://"+at.Host {
		return jwt.Audience{i.Audience}
	}
	return jwt.Audience{bare, bare + "/"}
}

// Approves reports whether members of some group decide the calls of the issuer's users.
func (i Issuer) Approves() bool {
	for _, roles := range i.Roles {
		if roles.Has(auth.Approver) {
			return true
		}
	}
	return false
}

// digest identifies the settings of the issuer: callers are no longer valid once it differs.
func (i Issuer) digest() string {
	text, _ := json.Marshal(i) // texts and numbers only
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Options configure [New].
type Options struct {
	// Issuers are the configured issuers. None means that no token is valid.
	Issuers []Issuer
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
	// Logger receives why keys cannot be fetched; nil drops it.
	Logger hclog.Logger

	fetchTime time.Duration // of one fetch; 0 means maxFetchTime; tests shorten it
}

// Issuers verifies the access tokens of issuers. It is safe for concurrent use.
type Issuers struct {
	opts Options
	all  atomic.Pointer[[]*verifier]
	mu   sync.Mutex // held while all is replaced
}

// New returns the verifier of issuers. Nothing is fetched yet. The caller must Close it.
func New(opts Options) *Issuers {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	if opts.fetchTime <= 0 {
		opts.fetchTime = maxFetchTime
	}
	s := &Issuers{opts: opts}
	s.Replace(opts.Issuers)
	return s
}

// Replace makes the issuers of a list the valid ones. An issuer with the same settings keeps its
// keys.
func (s *Issuers) Replace(list []Issuer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var before []*verifier
	if all := s.all.Load(); all != nil {
		before = *all
	}
	next := make([]*verifier, 0, len(list))
	for _, issuer := range list {
		digest := issuer.digest()
		if i := slices.IndexFunc(before, func(v *verifier) bool { return v.digest == digest }); i >= 0 {
			next = append(next, before[i])
			continue
		}
		next = append(next, &verifier{issuer: issuer, digest: digest, now: s.opts.Now, keys: newKeySet(issuer, s.opts)})
	}
	s.all.Store(&next)
	for _, v := range before {
		if !slices.Contains(next, v) {
			v.keys.close()
		}
	}
}

// Close ends the fetches under way. No token is valid afterwards.
func (s *Issuers) Close() error {
	s.Replace(nil)
	return nil
}

// List returns the issuers in the order of the configuration.
func (s *Issuers) List() []Issuer {
	all := *s.all.Load()
	list := make([]Issuer, len(all))
	for i, v := range all {
		list[i] = v.issuer
	}
	return list
}

// grace is how long a request that has begun may outlive its token: as long as a call waits at
// most for its result, so that a client that refreshes its token in time loses no call.
const grace = 10 * time.Minute

// Count reports whether the issuer of a caller is still configured as it was. A call that has
// begun does not end with its token, which a client replaces every few minutes.
func (s *Issuers) Count(caller auth.Caller) bool {
	return slices.ContainsFunc(*s.all.Load(), func(v *verifier) bool {
		return v.issuer.Name == caller.Issuer && v.digest == caller.Digest
	})
}

// Open reports whether an open request of a caller may continue: its issuer counts, and its token
// has expired at most 10 minutes ago.
func (s *Issuers) Open(caller auth.Caller) bool {
	return s.Count(caller) && s.opts.Now().Before(caller.Expires.Add(grace))
}

// MaxToken bounds an access token, in bytes.
const MaxToken = 16 << 10

// IsToken reports whether a credential has the form of an access token: three parts, as in a JWT.
func IsToken(credential string) bool {
	return strings.HasPrefix(credential, "ey") && strings.Count(credential, ".") >= 2
}

// Verify returns the caller for an access token. It waits for the keys of the issuer if none are
// known, at most 10 seconds. The error is an [*Error], or the cause of the end of ctx.
func (s *Issuers) Verify(ctx context.Context, token string) (auth.Caller, error) {
	if len(token) > MaxToken {
		return auth.Caller{}, refuse("", "it has %d bytes, and at most %d are accepted", len(token), MaxToken)
	}
	all := *s.all.Load()
	sum := sha256.Sum256([]byte(token))
	for _, v := range all {
		if caller, ok := v.known(ctx, sum); ok {
			return caller, nil
		}
	}
	signed, err := parse(token)
	if err != nil {
		return auth.Caller{}, err
	}
	var claimed jwt.Claims
	if err := strict.Unmarshal(signed.UnsafePayloadWithoutVerification(), &claimed); err != nil {
		return auth.Caller{}, refuse("", "its claims are not those of an access token: iss, sub, jti and aud are texts, exp, nbf and iat numbers, each once")
	}
	i := slices.IndexFunc(all, func(v *verifier) bool { return v.issuer.URL == claimed.Issuer })
	if i < 0 {
		return auth.Caller{}, refuse("", "its issuer is %.200q, which the configuration does not list", claimed.Issuer)
	}
	return all[i].verify(ctx, sum, signed)
}

// Error says why a token has no caller.
type Error struct {
	// Issuer is the name of the issuer; "" if it is none of the configured ones.
	Issuer string
	// Reason describes what is wrong with the token, e.g. "it expired at ...".
	Reason string
	// Roleless means that the token is valid, and its user has no role.
	Roleless bool
	// Outage means that the issuer's keys are not known, so that no token can be checked.
	Outage bool
}

// Error implements error.
func (e *Error) Error() string {
	if e.Issuer == "" {
		return e.Reason
	}
	return fmt.Sprintf("issuer %s: %s", e.Issuer, e.Reason)
}

func refuse(issuer, format string, args ...any) *Error {
	return &Error{Issuer: issuer, Reason: fmt.Sprintf(format, args...)}
}

// parse parses a signed JWT in compact form. The decoder of the library skips line breaks.
func parse(token string) (*jose.JSONWebSignature, error) {
	signed, err := jose.ParseSignedCompact(token, algorithms())
	if err != nil || strings.ContainsAny(token, "\r\n") {
		return nil, refuse("", "it is not a JWT with one signature by RS256, PS256, ES256 or EdDSA")
	}
	return signed, nil
}
