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

// Token is a credential as it is configured: the secret itself is nowhere but
// with its owner.
type Token struct {
	// Name is what the admin calls it. Names differ.
	Name string
	// SHA256 is the hex digest of the secret.
	SHA256 string
	// User, Roles, Approves and Elicitation are those of the [Caller] that it
	// becomes. Elicitation needs the role [Agent].
	User        string
	Roles       Roles
	Approves    []string
	Elicitation bool
	// Expires is when it stops to count; the zero value is never.
	Expires time.Time
	// Account is from where it may be used over the network.
	Account Account
}

// Revocation takes a token back, whatever the configuration says.
type Revocation struct {
	// Name is what the token was called, SHA256 the hex digest of its secret.
	Name, SHA256 string
	// At is when it stops to count.
	At time.Time
	// Ends is the same with a monotonic clock reading, if there is one: it comes also
	// when the clock is set back meanwhile.
	Ends time.Time
	// Ended says that it has stopped to count, whatever the clock says.
	Ended bool
}

// Over reports whether the token has stopped to count.
func (r Revocation) Over() bool { return r.Ended || passed(r.At) || passed(r.Ends) }

// Tokens knows the tokens that count. Its methods may be called from any
// goroutine.
type Tokens struct {
	known atomic.Pointer[[]knownToken]
}

// knownToken is a token that is ready to be compared.
type knownToken struct {
	sum     [sha256.Size]byte
	caller  Caller
	account Account
	expires time.Time
	revoked Revocation    // the zero value is none
	former  bool          // another one of its name is in the list
	used    *atomic.Int64 // when it was last looked up, in nanoseconds of Unix time; 0 is never
}

// ended reports whether it does not count any more.
func (k knownToken) ended() bool { return passed(k.expires) || k.revoked.Over() }

// passed reports whether a time has come; the zero value never does.
func passed(at time.Time) bool { return !at.IsZero() && !time.Now().Before(at) }

// NewTokens returns the tokens of a list, without those that are revoked. It refuses
// names or digests that stand twice, a digest that is none, a token without a user or
// with roles that [ParseRoles] would refuse, and elicitation for one that makes no
// calls.
func NewTokens(list []Token, revoked ...Revocation) (*Tokens, error) {
	t := &Tokens{}
	if err := t.Replace(list, revoked...); err != nil {
		return nil, err
	}
	return t, nil
}

// Replace makes the tokens of a list count and no others, or refuses the list
// as [NewTokens] does and changes nothing.
//
// A token that is revoked counts until then, also if the list has another secret for
// its name by now: it is the same in all but the secret.
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

// revoke takes one back that is known, or adds it as a former one of its name.
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
		return knownToken{}, errors.New("its sha256 is not one: expected 64 hex digits, as toolhost token new prints")
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
			Approves: slices.Clone(t.Approves), Elicitation: t.Elicitation,
		},
	}, nil
}

// Count reports whether the token that a caller has still counts, by its secret, for
// the same user and roles, and has not lost elicitation. Callers without a token
// always do.
func (t *Tokens) Count(caller Caller) bool {
	return caller.Token == "" || slices.ContainsFunc(*t.known.Load(), func(k knownToken) bool {
		return k.caller.Token == caller.Token && k.caller.Digest == caller.Digest && k.caller.User == caller.User && k.caller.Roles == caller.Roles &&
			(k.caller.Elicitation || !caller.Elicitation) && !k.ended()
	})
}

// Lookup returns the caller that a secret makes, with the token's name as its
// client. A secret shorter than [MinSecret] makes none, nor does one whose token
// has expired or is revoked. For others it takes the same time, whether a token has
// them, and which. The caller must not change Approves.
func (t *Tokens) Lookup(secret string) (Caller, bool) {
	caller, ok, _ := t.LookupFrom(secret, nil)
	return caller, ok
}

// LookupFrom is [Tokens.Lookup] for a secret that came over the network. The error is
// an [*AccountError] if the token is for another account.
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

// Listed is a token as it is listed.
type Listed struct {
	// Caller is who has it. The receiver must not change Approves.
	Caller Caller
	// Account is from where it may be used over the network.
	Account Account
	// Expires and Revoked are when it stops to count; LastUsed is when
	// [Tokens.Lookup] last found it. The zero value is never.
	Expires, Revoked, LastUsed time.Time
}

// List returns the tokens, in the order of the list that counts; then former ones
// that are revoked and still count.
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

// Digests returns the hex digests of the tokens with a name that count.
func (t *Tokens) Digests(name string) (digests []string) {
	for _, k := range *t.known.Load() {
		if k.caller.Token == name && !k.ended() {
			digests = append(digests, hex.EncodeToString(k.sum[:]))
		}
	}
	return digests
}

// NextEnd returns when the next token that counts expires or ends, the zero time if none
// does.
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

// Ended is why a token does not count any more.
type Ended struct {
	// Name is the token's.
	Name string
	// At is when it expired, or was revoked.
	At      time.Time
	Revoked bool
}

// Ended says why the token with a secret does not count any more, if there is one.
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

// TokenPrefix begins each token that [NewToken] makes.
const TokenPrefix = "th_"

// A token is the prefix, 32 random bytes and a checksum, both in base64url.
const (
	tokenBody     = 43 // characters
	tokenChecksum = 6
	tokenLength   = len(TokenPrefix) + tokenBody + tokenChecksum
)

// NewToken makes a secret of 256 random bits, and the digest by which a
// configuration knows it.
func NewToken() (secret, sha256hex string) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	body := TokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	secret = body + checksum(body)
	return secret, Digest(secret)
}

// Digest returns the hex SHA-256 of a secret, which is what a [Token] holds.
func Digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// CheckForm says what is wrong with the form of a secret that [NewToken] is
// said to have made: a typing error can so be told from a token that does not
// count.
func CheckForm(secret string) error {
	switch {
	case !strings.HasPrefix(secret, TokenPrefix):
		return fmt.Errorf("a token begins with %s", TokenPrefix)
	case len(secret) != tokenLength:
		return fmt.Errorf("a token has %d characters, this one has %d", tokenLength, len(secret))
	}
	body := secret[:len(TokenPrefix)+tokenBody]
	if secret[len(body):] != checksum(body) {
		return errors.New("the token is mistyped: its last characters do not fit the rest")
	}
	return nil
}

func checksum(body string) string {
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(body)))
	return base64.RawURLEncoding.EncodeToString(sum)
}
