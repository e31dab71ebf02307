package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	strict "github.com/go-jose/go-jose/v4/json"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/toolhost/toolhost/host/internal/auth"
)

const (
	// skew is how much the clocks of issuer and host may differ.
	skew = time.Minute
	// maxKnown bounds the tokens of one issuer whose caller is remembered.
	maxKnown = 1024
)

// verifier verifies the tokens of one issuer.
type verifier struct {
	issuer Issuer
	digest string
	now    func() time.Time
	keys   *keySet

	mu       sync.Mutex // guards verified
	verified map[[sha256.Size]byte]verified
}

// verified is a token that was verified, by its digest.
type verified struct {
	caller     auth.Caller
	generation int // of the keys
}

// known returns the caller of a token that was verified with the keys in force and has not
// expired.
func (v *verifier) known(ctx context.Context, sum [sha256.Size]byte) (auth.Caller, bool) {
	v.mu.Lock()
	found, ok := v.verified[sum]
	v.mu.Unlock()
	if !ok || v.expired(found.caller.Expires) {
		return auth.Caller{}, false
	}
	_, generation, err := v.keys.current(ctx)
	return found.caller, err == nil && generation == found.generation
}

func (v *verifier) expired(at time.Time) bool { return v.now().After(at.Add(skew)) }

// remember keeps a verified token until it expires or others need its place.
func (v *verifier) remember(sum [sha256.Size]byte, caller auth.Caller, generation int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.verified) >= maxKnown {
		for known, of := range v.verified {
			if v.expired(of.caller.Expires) || len(v.verified) >= maxKnown {
				delete(v.verified, known)
			}
		}
	}
	if v.verified == nil {
		v.verified = make(map[[sha256.Size]byte]verified)
	}
	v.verified[sum] = verified{caller, generation}
}

// verify returns the caller of a token that claims to be the issuer's.
func (v *verifier) verify(ctx context.Context, sum [sha256.Size]byte, signed *jose.JSONWebSignature) (auth.Caller, error) {
	header := signed.Signatures[0].Header
	keys, generation, err := v.keys.current(ctx)
	if err != nil {
		return auth.Caller{}, err
	}
	fitting := fit(keys, header)
	if len(fitting) == 0 {
		if keys, generation, err = v.keys.after(ctx, generation); err != nil {
			return auth.Caller{}, err
		}
		fitting = fit(keys, header)
	}
	if len(fitting) == 0 {
		return auth.Caller{}, refuse(v.issuer.Name, "the issuer has no key %.100q for %s", header.KeyID, header.Algorithm)
	}
	var payload []byte
	for _, key := range fitting {
		if payload, err = signed.Verify(key.Key); err == nil {
			break
		}
	}
	if err != nil {
		return auth.Caller{}, refuse(v.issuer.Name, "its signature is wrong")
	}
	var c claims
	if err := errors.Join(strict.Unmarshal(payload, &c.Claims), strict.Unmarshal(payload, &c.all)); err != nil {
		return auth.Caller{}, refuse(v.issuer.Name, "its claims are not those of an access token: iss, sub, jti and aud are texts, exp, nbf and iat numbers, each once")
	}
	c.typ, _ = header.ExtraHeaders[jose.HeaderType].(string)
	caller, err := v.caller(c)
	if err != nil {
		return auth.Caller{}, err
	}
	v.remember(sum, caller, generation)
	return caller, nil
}

// algorithms returns the accepted algorithms: none with a shared secret, and not "none".
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA}
}

// fit returns the keys with which a token may be signed: by its key id, if it has one, and by the
// type of the key. Other headers that name keys (jku, x5u, jwk, x5c) are ignored.
func fit(keys []jose.JSONWebKey, header jose.Header) (fitting []jose.JSONWebKey) {
	for _, key := range keys {
		if (header.KeyID == "" || header.KeyID == key.KeyID) && signsBy(key, header.Algorithm) {
			fitting = append(fitting, key)
		}
	}
	return fitting
}

func signsBy(key jose.JSONWebKey, algorithm string) bool {
	if key.Algorithm != "" && key.Algorithm != algorithm {
		return false
	}
	switch key.Key.(type) {
	case *rsa.PublicKey:
		return algorithm == string(jose.RS256) || algorithm == string(jose.PS256)
	case *ecdsa.PublicKey:
		return algorithm == string(jose.ES256)
	case ed25519.PublicKey:
		return algorithm == string(jose.EdDSA)
	}
	return false
}

// claims are the claims of a token whose signature is right.
type claims struct {
	jwt.Claims

	all map[string]any
	typ string // the header typ
}

// caller returns the caller that claims describe, if they are valid now.
func (v *verifier) caller(c claims) (auth.Caller, error) {
	if err := v.check(c); err != nil {
		return auth.Caller{}, err
	}
	user, err := v.user(c)
	if err != nil {
		return auth.Caller{}, err
	}
	groups, err := v.groups(c)
	if err != nil {
		return auth.Caller{}, err
	}
	roles := v.roles(groups)
	if roles == 0 {
		return auth.Caller{}, &Error{Issuer: v.issuer.Name, Roleless: true, Reason: "none of the user's groups has a role here"}
	}
	for n, group := range groups {
		groups[n] = v.issuer.Qualified(group)
	}
	return auth.Caller{
		User: user, Client: v.issuer.Name, Token: v.issuer.Name, Issuer: v.issuer.Name, Digest: v.digest,
		Roles: roles, Groups: groups, Expires: c.Expiry.Time(),
	}, nil
}

// check checks whom a token is for, when it is valid, and that it is an access token.
func (v *verifier) check(c claims) error {
	now := v.now()
	switch err := c.ValidateWithLeeway(jwt.Expected{Issuer: v.issuer.URL, AnyAudience: v.issuer.audiences(), Time: now}, skew); {
	case errors.Is(err, jwt.ErrInvalidAudience):
		return refuse(v.issuer.Name, "it is for another audience: expected %q in aud", v.issuer.Audience)
	case errors.Is(err, jwt.ErrExpired):
		return refuse(v.issuer.Name, "it expired at %s", c.Expiry.Time().UTC().Format(time.RFC3339))
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return refuse(v.issuer.Name, "it is not valid yet: compare the clocks of issuer and host")
	case err != nil:
		return refuse(v.issuer.Name, "%v", err)
	case c.Expiry == nil:
		return refuse(v.issuer.Name, "it has no exp")
	}
	switch typ := strings.TrimPrefix(strings.ToLower(c.typ), "application/"); {
	case typ == "at+jwt": // RFC 9068; an ID token never has it
		return nil
	case typ != "" && typ != "jwt":
		return refuse(v.issuer.Name, "its type is %.50q: expected at+jwt or JWT", c.typ)
	case c.forOthers():
		return refuse(v.issuer.Name, "it is an ID token or a refresh token: expected an access token")
	}
	return nil
}

// forOthers reports whether the claims are those of an ID token or of a refresh token. The
// standards have no sign that is always there, so issuers have their own.
func (c claims) forOthers() bool {
	if kind, ok := c.all["typ"].(string); ok { // Keycloak; its access tokens may have a nonce
		return !strings.EqualFold(kind, "Bearer")
	}
	if kind, ok := c.all["token_use"].(string); ok { // Cognito
		return kind != "access"
	}
	return slices.ContainsFunc([]string{"nonce", "at_hash", "c_hash"}, func(name string) bool { // OpenID Connect Core
		_, ok := c.all[name]
		return ok
	})
}

// named returns the claim with a name. If there is none, the dots in the name separate the names of
// nested claims. value is nil if there is no such claim; ok is false if one on the way is not an object.
func (c claims) named(name string) (value any, ok bool) {
	if whole, is := c.all[name]; is {
		return whole, true
	}
	value = c.all
	for element := range strings.SplitSeq(name, ".") {
		within, is := value.(map[string]any)
		if !is {
			return nil, value == nil
		}
		value = within[element]
	}
	return value, true
}

// user returns the name of the user.
func (v *verifier) user(c claims) (string, error) {
	claim := v.issuer.UserClaim
	value, _ := c.named(claim)
	name, ok := value.(string)
	user := v.issuer.Qualified(name)
	switch {
	case !ok:
		return "", refuse(v.issuer.Name, "its claim %q, which names the user, is missing or not a text", claim)
	case !auth.ValidUser(name) || !auth.ValidUser(user):
		return "", refuse(v.issuer.Name, "its claim %q cannot name a user: expected visible characters without space around them, at most %d bytes with %q", claim, auth.MaxUser, "@"+v.issuer.Name)
	}
	if verified, said := c.all["email_verified"]; claim == "email" && said && verified != true {
		return "", refuse(v.issuer.Name, "the issuer has not verified the user's email")
	}
	return user, nil
}

// groups returns the names of the user's groups: a list, or one name.
func (v *verifier) groups(c claims) ([]string, error) {
	claim := v.issuer.GroupsClaim
	outer, _, _ := strings.Cut(claim, ".")
	value, ok := c.named(claim)
	if !ok {
		return nil, refuse(v.issuer.Name, "its claim %q cannot be read: a claim on the way to it is not an object", claim)
	}
	var groups []string
	switch given := value.(type) {
	case nil:
		// Some issuers leave a long list out, and say that it is elsewhere (OpenID Connect
		// Core, "Aggregated and Distributed Claims"). Then the groups are not known.
		if elsewhere, _ := c.all["_claim_names"].(map[string]any); elsewhere[claim] != nil || elsewhere[outer] != nil {
			return nil, refuse(v.issuer.Name, "its claim %q is elsewhere: let the issuer list fewer groups", claim)
		}
	case string:
		groups = []string{given}
	case []any:
		for _, element := range given {
			name, ok := element.(string)
			if !ok {
				return nil, refuse(v.issuer.Name, "its claim %q is not a list of texts", claim)
			}
			groups = append(groups, name)
		}
	default:
		return nil, refuse(v.issuer.Name, "its claim %q is not a list of texts", claim)
	}
	if slices.ContainsFunc(groups, func(name string) bool { return !auth.ValidGroup(name) }) {
		return nil, refuse(v.issuer.Name, "its claim %q has a name that is not one of visible characters, at most %d bytes", claim, auth.MaxGroup)
	}
	return groups, nil
}

// roles returns the roles of a member of groups. Who decides or administers makes no calls.
func (v *verifier) roles(groups []string) (roles auth.Roles) {
	for _, group := range groups {
		roles |= v.issuer.Roles[group]
	}
	if above := roles &^ auth.Agent; above != 0 {
		return above
	}
	for _, of := range v.issuer.Roles {
		if of.Has(auth.Agent) {
			return roles // only members of some groups make calls
		}
	}
	return auth.Agent
}
