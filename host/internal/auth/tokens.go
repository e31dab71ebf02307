package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Token is a configured credential. Only its owner has the secret.
type Token struct {
	// Name is the name in the configuration. Names differ.
	Name string
	// SHA256 is the hex digest of the secret.
	SHA256 string
	// User, Roles, Approves and Elicitation are those of its [Caller]. Elicitation needs the
	// role [Agent].
	User        string
	Roles       Roles
	Approves    []string
	Elicitation bool
	// Structured and Toolsets are those of the [Caller].
	Structured bool
	Toolsets   []Toolset
	// Expires is when the token expires; the zero value means never.
	Expires time.Time
	// Account is the account that may use the token over the network.
	Account Account
}

// Revocation revokes a token, even if the configuration lists it.
type Revocation struct {
	// Name is the name of the token, SHA256 the hex digest of its secret.
	Name, SHA256 string
	// At is when the revocation takes effect.
	At time.Time
	// Ends is the same time with a monotonic clock reading, if there is one. It takes effect
	// even if the clock is set back.
	Ends time.Time
	// Ended is set if the revocation has taken effect, whatever the clock says.
	Ended bool
}

// Over reports whether the revocation has taken effect.
func (r Revocation) Over() bool { return r.Ended || passed(r.At) || passed(r.Ends) }

// Tokens holds the valid tokens. It is safe for concurrent use.
type Tokens struct {
	known atomic.Pointer[[]knownToken]
}

// knownToken is a token in the form for lookups.
type knownToken struct {
	sum     [sha256.Size]byte
	caller  Caller
	account Account
	expires time.Time
	revoked Revocation    // the zero value means not revoked
	former  bool          // the list has another secret for this name
	used    *atomic.Int64 // last lookup, in nanoseconds of Unix time; 0 means never
}

// ended reports whether the token is no longer valid.
func (k knownToken) ended() bool { return passed(k.expires) || k.revoked.Over() }

// passed reports whether a time has come; the zero time never does.
func passed(at time.Time) bool { return !at.IsZero() && !time.Now().Before(at) }

// NewTokens returns the tokens of a list, except revoked ones. It refuses duplicate names
// and digests, an invalid digest, a token without a user or with roles that [ParseRoles]
// refuses, and elicitation for a token that makes no calls.
func NewTokens(list []Token, revoked ...Revocation) (*Tokens, error) {
	t := &Tokens{}
	if err := t.Replace(list, revoked...); err != nil {
		return nil, err
	}
	return t, nil
}

// Replace makes the tokens of a list the valid ones. If it refuses the list, as [NewTokens]
// does, it changes nothing.
//
// A revoked token is valid until its revocation takes effect, even if the list has another
// secret for its name: it keeps everything else of that name.
func (t *Tokens) Replace(list []Token, revoked ...Revocation) error {
	names := make(map[string]bool)
	known := make([]knownToken, 0, len(list))
	var before []knownToken
	if all := t.known.Load(); all != nil {
		before = *all
	}
	for _, token := range list {
		ready, err := token.check()
		if err != nil {
			return fmt.Errorf("token %q: %w", token.Name, err)
		}
		if names[token.Name] {
			return fmt.Errorf("token %q: two tokens have this name", token.Name)
		}
		if slices.ContainsFunc(known, func(k knownToken) bool { return k.sum == ready.sum }) {
			return fmt.Errorf("token %q: another token has this sha256", token.Name)
		}
		names[token.Name] = true
		known = append(known, ready)
	}
	for _, r := range revoked {
		known = revoke(known, r)
	}
	for i := range known {
		if j := slices.IndexFunc(before, func(k knownToken) bool { return k.sum == known[i].sum }); j >= 0 {
			known[i].used = before[j].used
		}
	}
	t.known.Store(&known)
	return nil
}

// revoke marks a known token as revoked, or adds it as a former token of its name.
func revoke(known []knownToken, r Revocation) []knownToken {
	sum, err := hex.DecodeString(r.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return known
	}
	if i := slices.IndexFunc(known, func(k knownToken) bool { return k.sum == [sha256.Size]byte(sum) }); i >= 0 {
		known[i].revoked = r
		return known
	}
	i := slices.IndexFunc(known, func(k knownToken) bool { return k.caller.Token == r.Name })
	if i < 0 {
		return known
	}
	former := known[i]
	former.sum, former.revoked, former.former, former.used = [sha256.Size]byte(sum), r, true, new(atomic.Int64)
	former.caller.Digest = hex.EncodeToString(sum)
	return append(known, former)
}

func (t Token) check() (knownToken, error) {
	sum, err := hex.DecodeString(t.SHA256)
	switch {
	case err != nil || len(sum) != sha256.Size:
		return knownToken{}, errors.New("its sha256 is invalid: expected 64 hex digits, as toolhost token new prints")
	case t.User == "":
		return knownToken{}, errors.New("it has no user")
	case t.Roles == 0:
		return knownToken{}, errors.New("it has no role")
	case t.Elicitation && !t.Roles.Has(Agent):
		return knownToken{}, errors.New("it has elicitation without the role agent")
	}
	if _, err := ParseRoles(t.Roles.Names()); err != nil {
		return knownToken{}, err
	}
	return knownToken{
		sum: [sha256.Size]byte(sum), account: t.Account, expires: t.Expires, used: new(atomic.Int64),
		caller: Caller{
			User: t.User, Client: t.Name, Token: t.Name, Digest: hex.EncodeToString(sum), Roles: t.Roles,
			Approves: slices.Clone(t.Approves), Elicitation: t.Elicitation, Structured: t.Structured, Toolsets: slices.Clone(t.Toolsets),
		},
	}, nil
}

// Count reports whether the token of a caller is still valid: with the same secret, user and
// roles, and with elicitation if the caller has it. A caller without a token is always valid.
func (t *Tokens) Count(caller Caller) bool {
	return caller.Token == "" || slices.ContainsFunc(*t.known.Load(), func(k knownToken) bool {
		return k.caller.Token == caller.Token && k.caller.Digest == caller.Digest && k.caller.User == caller.User && k.caller.Roles == caller.Roles &&
			(k.caller.Elicitation || !caller.Elicitation) && !k.ended()
	})
}

// Lookup returns the caller for a secret. Its client is the token's name. A secret shorter
// than [MinSecret], or of an expired or revoked token, has no caller. Lookup takes the same
// time for any other secret. The caller must not change Approves.
func (t *Tokens) Lookup(secret string) (Caller, bool) {
	caller, ok, _ := t.LookupFrom(secret, nil)
	return caller, ok
}

// LookupFrom is like [Tokens.Lookup], for a secret that arrived over the network. If the token
// is for another account, the error is an [*AccountError].
func (t *Tokens) LookupFrom(secret string, from Origin) (Caller, bool, error) {
	known, ok := t.find(secret)
	if !ok || known.ended() {
		return Caller{}, false, nil
	}
	if err := known.account.check(known.caller.Token, from); err != nil {
		return Caller{}, false, err
	}
	known.used.Store(time.Now().UnixNano())
	return known.caller, true, nil
}

// Again returns the caller of a token that was looked up before, by its name and the digest of its
// secret; otherwise it is [Tokens.LookupFrom].
func (t *Tokens) Again(name, digest string, from Origin) (Caller, bool, error) {
	all := *t.known.Load()
	i := slices.IndexFunc(all, func(k knownToken) bool { return k.caller.Token == name && k.caller.Digest == digest })
	if i < 0 || all[i].ended() {
		return Caller{}, false, nil
	}
	if err := all[i].account.check(name, from); err != nil {
		return Caller{}, false, err
	}
	all[i].used.Store(time.Now().UnixNano())
	return all[i].caller, true, nil
}

// Listed is one token in a list.
type Listed struct {
	// Caller is the token's caller. The receiver must not change Approves.
	Caller Caller
	// Account is the account that may use the token over the network.
	Account Account
	// Expires and Revoked are when the token stops being valid. LastUsed is its last
	// successful [Tokens.Lookup]. The zero value means never.
	Expires, Revoked, LastUsed time.Time
}

// List returns the tokens in the order of the configured list, and then former ones whose
// revocation has not taken effect yet.
func (t *Tokens) List() (all []Listed) {
	for _, k := range *t.known.Load() {
		if k.former && k.ended() {
			continue
		}
		l := Listed{Caller: k.caller, Account: k.account, Expires: k.expires, Revoked: k.revoked.At}
		if used := k.used.Load(); used != 0 {
			l.LastUsed = time.Unix(0, used)
		}
		all = append(all, l)
	}
	return all
}

// Digests returns the hex digests of the valid tokens with a name.
func (t *Tokens) Digests(name string) (digests []string) {
	for _, k := range *t.known.Load() {
		if k.caller.Token == name && !k.ended() {
			digests = append(digests, hex.EncodeToString(k.sum[:]))
		}
	}
	return digests
}

// NextEnd returns when the next token stops being valid, or the zero time if none will.
func (t *Tokens) NextEnd() (next time.Time) {
	for _, k := range *t.known.Load() {
		if k.ended() {
			continue
		}
		for _, end := range []time.Time{k.expires, k.revoked.At, k.revoked.Ends} {
			if !end.IsZero() && (next.IsZero() || end.Before(next)) {
				next = end
			}
		}
	}
	return next
}

// Ended explains why a token is no longer valid.
type Ended struct {
	// Name is the name of the token.
	Name string
	// At is when the token expired or was revoked.
	At      time.Time
	Revoked bool
}

// Ended explains why the token with a secret is no longer valid. ok is false if there is no
// such token.
func (t *Tokens) Ended(secret string) (Ended, bool) {
	known, ok := t.find(secret)
	switch {
	case !ok || !known.ended():
		return Ended{}, false
	case known.revoked.Over():
		return Ended{Name: known.caller.Token, At: known.revoked.At, Revoked: true}, true
	}
	return Ended{Name: known.caller.Token, At: known.expires}, true
}

// find returns the token with a secret.
func (t *Tokens) find(secret string) (found knownToken, ok bool) {
	if len(secret) < MinSecret {
		return knownToken{}, false
	}
	sum := sha256.Sum256([]byte(secret))
	for _, known := range *t.known.Load() {
		if subtle.ConstantTimeCompare(sum[:], known.sum[:]) == 1 {
			found, ok = known, true
		}
	}
	return found, ok
}

// TokenPrefix begins every token of [NewToken].
const TokenPrefix = "th_"

// A token is the prefix, 32 random bytes and a checksum, both in base64url.
const (
	tokenBody     = 43 // characters
	tokenChecksum = 6
	tokenLength   = len(TokenPrefix) + tokenBody + tokenChecksum
)

// NewToken returns a secret of 256 random bits, and its digest for the configuration.
func NewToken() (secret, sha256hex string) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	body := TokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	secret = body + checksum(body)
	return secret, Digest(secret)
}

// Digest returns the hex SHA-256 of a secret, as in [Token].
func Digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// CheckForm checks that a secret has the form of one of [NewToken]. It tells a typing error
// from an invalid token.
func CheckForm(secret string) error {
	switch {
	case !strings.HasPrefix(secret, TokenPrefix):
		return fmt.Errorf("a token begins with %s", TokenPrefix)
	case len(secret) != tokenLength:
		return fmt.Errorf("a token has %d characters; this one has %d", tokenLength, len(secret))
	}
	body := secret[:len(TokenPrefix)+tokenBody]
	if secret[len(body):] != checksum(body) {
		return errors.New("the token is mistyped: its checksum does not match")
	}
	return nil
}

func checksum(body string) string {
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(body)))
	return base64.RawURLEncoding.EncodeToString(sum)
}

// MinSecret is the minimum length of a secret, in bytes. A shorter one is never valid,
// whatever the configuration says.
const MinSecret = 20

// Guessable reports whether a lower-case digest is that of an obvious secret: the empty
// text, a common word, or one of the names. Other short secrets cannot be recognized by
// their digest; [MinSecret] excludes them.
func Guessable(sha256hex string, names ...string) bool {
	words := append(slices.Clone(names), "")
	words = append(words, strings.Fields(commonSecrets)...)
	return slices.ContainsFunc(words, func(word string) bool {
		return Digest(word) == sha256hex || Digest(word+"\n") == sha256hex // as `echo word | sha256sum` prints it
	})
}

// commonSecrets are words that people use as secrets in examples or for testing.
const commonSecrets = `
	0 00000000 1 11111111 123 1234 12345 123456 1234567 12345678 123456789 1234567890 a aaaa abc abc123 access
	admin administrator agent api apikey api-key approver asdf bearer bob changeit changeme change-me
	default demo dev dummy example foo foobar hello hunter2 key letmein local localhost login master
	mytoken none null pass passw0rd password Password password1 Password1 placeholder qwerty root s3cr3t sample
	secret Secret secret123 secretkey sesame setme supersecret swordfish temp test test123 tester testing
	testtoken th_ TODO todo token Token toolhost toor trustno1 undefined user welcome x xxx xxxx xxxxxxxx
	xyz your-secret your-token yourtoken
`
