package auth_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/auth"
)

func TestLookup(t *testing.T) {
	agent, agentSum := auth.NewToken()
	asker, askerSum := auth.NewToken()
	approver, approverSum := auth.NewToken()
	stranger, _ := auth.NewToken()
	short := strings.Repeat("a", auth.MinSecret-1)
	tokens, err := auth.NewTokens([]auth.Token{
		{Name: "empty", SHA256: auth.Digest(""), User: "ada", Roles: auth.Approver | auth.Admin},
		{Name: "short", SHA256: auth.Digest(short), User: "ada", Roles: auth.Approver | auth.Admin},
		{Name: "long", SHA256: auth.Digest(short + "a"), User: "ada", Roles: auth.Agent},
		{Name: "ci", SHA256: agentSum, User: "ci", Roles: auth.Agent},
		{Name: "asker", SHA256: askerSum, User: "ada", Roles: auth.Agent, Elicitation: true},
		{Name: "boss", SHA256: strings.ToUpper(approverSum), User: "ada", Roles: auth.Approver | auth.Admin, Approves: []string{"ci"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, secret string
		want         auth.Caller
		ok           bool
	}{
		{"an agent's", agent, auth.Caller{User: "ci", Client: "ci", Token: "ci", Roles: auth.Agent}, true},
		{"an agent's with elicitation", asker, auth.Caller{User: "ada", Client: "asker", Token: "asker", Roles: auth.Agent, Elicitation: true}, true},
		{"an approver's", approver, auth.Caller{User: "ada", Client: "boss", Token: "boss", Roles: auth.Approver | auth.Admin, Approves: []string{"ci"}}, true},
		{"nobody's", stranger, auth.Caller{}, false},
		{"none", "", auth.Caller{}, false},
		{"a short one", short, auth.Caller{}, false},
		{"the shortest that counts", short + "a", auth.Caller{User: "ada", Client: "long", Token: "long", Roles: auth.Agent}, true},
		{"the digest itself", agentSum, auth.Caller{}, false},
		{"one character more", agent + "A", auth.Caller{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.ok {
				tt.want.Digest = auth.Digest(tt.secret)
			}
			got, ok := tokens.Lookup(tt.secret)
			if diff := cmp.Diff(tt.want, got); diff != "" || ok != tt.ok {
				t.Errorf("Lookup = %v, %v; want %v, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestReplace(t *testing.T) {
	first, firstSum := auth.NewToken()
	second, secondSum := auth.NewToken()
	tokens, err := auth.NewTokens([]auth.Token{{Name: "a", SHA256: firstSum, User: "u", Roles: auth.Agent}})
	if err != nil {
		t.Fatal(err)
	}
	if err := tokens.Replace([]auth.Token{{Name: "b", SHA256: "x", User: "u", Roles: auth.Agent}}); err == nil {
		t.Error("Replace with a wrong list: no error")
	}
	if _, ok := tokens.Lookup(first); !ok {
		t.Error("a refused list took the place of the one before")
	}
	if err := tokens.Replace([]auth.Token{{Name: "b", SHA256: secondSum, User: "u", Roles: auth.Agent}}); err != nil {
		t.Fatal(err)
	}
	if _, ok := tokens.Lookup(first); ok {
		t.Error("a token that was taken out still counts")
	}
	if _, ok := tokens.Lookup(second); !ok {
		t.Error("a token that was put in does not count")
	}
}

func TestNewTokensRefuses(t *testing.T) {
	_, sum := auth.NewToken()
	_, other := auth.NewToken()
	good := auth.Token{Name: "a", SHA256: sum, User: "u", Roles: auth.Agent}
	for _, tt := range []struct {
		name string
		list []auth.Token
		want string
	}{
		{"a digest that is none", []auth.Token{{Name: "a", SHA256: "abc", User: "u", Roles: auth.Agent}}, "64 hex digits"},
		{"no user", []auth.Token{{Name: "a", SHA256: sum, Roles: auth.Agent}}, "no user"},
		{"no role", []auth.Token{{Name: "a", SHA256: sum, User: "u"}}, "no role"},
		{"an agent that approves", []auth.Token{{Name: "a", SHA256: sum, User: "u", Roles: auth.Agent | auth.Approver}}, "must not decide"},
		{"an agent that administers", []auth.Token{{Name: "a", SHA256: sum, User: "u", Roles: auth.Agent | auth.Admin}}, "must not decide"},
		{"an approver with elicitation", []auth.Token{{Name: "a", SHA256: sum, User: "u", Roles: auth.Approver, Elicitation: true}}, "without the role agent"},
		{"a name twice", []auth.Token{good, {Name: "a", SHA256: other, User: "u", Roles: auth.Agent}}, "two tokens"},
		{"a secret twice", []auth.Token{good, {Name: "b", SHA256: strings.ToUpper(sum), User: "u", Roles: auth.Approver}}, "another token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := auth.NewTokens(tt.list); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("NewTokens(%v): %v, want an error with %q", tt.list, err, tt.want)
			}
		})
	}
}

func TestCheckForm(t *testing.T) {
	secret, _ := auth.NewToken()
	if err := auth.CheckForm(secret); err != nil {
		t.Errorf("CheckForm of a new token: %v", err)
	}
	for i := 3; i < len(secret); i++ {
		other := 'A'
		if secret[i] == 'A' {
			other = 'B'
		}
		if err := auth.CheckForm(secret[:i] + string(other) + secret[i+1:]); err == nil {
			t.Errorf("CheckForm sees no mistake at character %d", i)
		}
	}
	for _, wrong := range []string{"", "th_", secret[:len(secret)-1], secret + "A", "Bearer " + secret, "xx_" + secret[3:]} {
		if err := auth.CheckForm(wrong); err == nil {
			t.Errorf("CheckForm(%q): no error", wrong)
		}
	}
}

func TestParseRoles(t *testing.T) {
	for _, tt := range []struct {
		names []string
		want  auth.Roles
		ok    bool
	}{
		{[]string{"agent"}, auth.Agent, true},
		{[]string{"approver", "admin"}, auth.Approver | auth.Admin, true},
		{[]string{"agent", "agent"}, auth.Agent, true},
		{[]string{"agent", "approver"}, 0, false},
		{[]string{"admin", "agent"}, 0, false},
		{[]string{"monitor"}, auth.Monitor, true},
		{[]string{"agent", "monitor"}, 0, false},
		{[]string{"root"}, 0, false},
		{nil, 0, true},
	} {
		if got, err := auth.ParseRoles(tt.names); got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseRoles(%v) = %v, %v; want %v, ok %v", tt.names, got, err, tt.want, tt.ok)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	var list []auth.Token
	var secret, sum string
	for i := range 20 {
		secret, sum = auth.NewToken()
		list = append(list, auth.Token{Name: string(rune('a' + i)), SHA256: sum, User: "u", Roles: auth.Agent})
	}
	tokens, err := auth.NewTokens(list)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		tokens.Lookup(secret)
	}
}

// TestCount checks which callers are still valid after the tokens were replaced.
func TestCount(t *testing.T) {
	_, first := auth.NewToken()
	_, second := auth.NewToken()
	list := func(roles auth.Roles, elicitation bool) []auth.Token {
		return []auth.Token{{Name: "a", SHA256: first, User: "ada", Roles: roles, Elicitation: elicitation}, {Name: "b", SHA256: second, User: "bob", Roles: auth.Agent}}
	}
	tokens, err := auth.NewTokens(list(auth.Agent, true))
	if err != nil {
		t.Fatal(err)
	}
	plain := auth.Caller{User: "ada", Token: "a", Digest: first, Roles: auth.Agent}
	ada := plain
	ada.Elicitation = true
	local := auth.Caller{User: "ada", Roles: auth.Agent}
	replaced := list(auth.Agent, true)
	_, replaced[0].SHA256 = auth.NewToken()
	for _, tt := range []struct {
		name        string
		list        []auth.Token
		plain, want bool // plain is the caller without elicitation
	}{
		{"another secret of its name", replaced, false, false},
		{"the same tokens", list(auth.Agent, true), true, true},
		{"other roles", list(auth.Approver, false), false, false},
		{"without it", list(auth.Agent, true)[1:], false, false},
		{"without elicitation", list(auth.Agent, false), true, false},
	} {
		if err := tokens.Replace(tt.list); err != nil {
			t.Fatal(err)
		}
		if got := tokens.Count(ada); got != tt.want {
			t.Errorf("%s: Count = %v, want %v", tt.name, got, tt.want)
		}
		if got := tokens.Count(plain); got != tt.plain {
			t.Errorf("%s: Count without elicitation = %v, want %v", tt.name, got, tt.plain)
		}
		if !tokens.Count(local) {
			t.Errorf("%s: a caller without a token does not count", tt.name)
		}
	}
}

func TestGuessable(t *testing.T) {
	_, made := auth.NewToken()
	for secret, want := range map[string]bool{"": true, "\n": true, "secret": true, "secret\n": true, "ci-agent": true, "ci-agent-2": false} {
		if got := auth.Guessable(auth.Digest(secret), "ci-agent", "ada"); got != want {
			t.Errorf("Guessable(the digest of %q) = %t, want %t", secret, got, want)
		}
	}
	if auth.Guessable(made) {
		t.Error("a token that was made counts as guessable")
	}
}

// TestTokenExpires checks that a token is valid until it expires.
func TestTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret, sum := auth.NewToken()
		at := time.Now().Add(time.Hour)
		tokens, err := auth.NewTokens([]auth.Token{{Name: "a", SHA256: sum, User: "u", Roles: auth.Agent, Expires: at}})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour - 1)
		caller, ok := tokens.Lookup(secret)
		if _, ended := tokens.Ended(secret); !ok || ended || !tokens.Count(caller) {
			t.Errorf("before it expires: Lookup = %v, Ended = %v, Count = %v", ok, ended, tokens.Count(caller))
		}
		<-time.After(1)
		_, ok = tokens.Lookup(secret)
		if end, ended := tokens.Ended(secret); ok || !ended || end.Name != "a" || end.Revoked || !end.At.Equal(at) || tokens.Count(caller) {
			t.Errorf("when it has expired: Lookup = %v, Ended = %+v, %v, Count = %v", ok, end, ended, tokens.Count(caller))
		}
	})
}

// TestListTokens checks that the last use of a token is recorded and survives a reload.
func TestListTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret, sum := auth.NewToken()
		used := auth.Token{Name: "a", SHA256: sum, User: "u", Roles: auth.Agent, Expires: time.Now().Add(time.Hour)}
		other := auth.Token{Name: "b", SHA256: auth.Digest("another secret of b"), User: "u", Roles: auth.Approver}
		tokens, err := auth.NewTokens([]auth.Token{used, other})
		if err != nil {
			t.Fatal(err)
		}
		want := []auth.Listed{
			{Caller: auth.Caller{User: "u", Client: "a", Token: "a", Digest: sum, Roles: auth.Agent}, Expires: used.Expires},
			{Caller: auth.Caller{User: "u", Client: "b", Token: "b", Digest: other.SHA256, Roles: auth.Approver}},
		}
		if diff := cmp.Diff(want, tokens.List()); diff != "" {
			t.Errorf("before any use: -want +got\n%s", diff)
		}
		tokens.Lookup(secret)
		want[0].LastUsed = time.Now()
		<-time.After(time.Minute)
		if err := tokens.Replace([]auth.Token{used, other}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, tokens.List()); diff != "" {
			t.Errorf("after a use and a reload: -want +got\n%s", diff)
		}
		<-time.After(time.Hour)
		tokens.Lookup(secret) // expired
		if diff := cmp.Diff(want, tokens.List()); diff != "" {
			t.Errorf("after it was refused: -want +got\n%s", diff)
		}
	})
}

// TestRevoke checks that a revoked token is valid until the revocation takes effect. The
// secret decides, not the name: the token that replaced it stays valid.
func TestRevoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, oldSum := auth.NewToken()
		next, nextSum := auth.NewToken()
		token := auth.Token{Name: "a", SHA256: oldSum, User: "u", Roles: auth.Agent}
		tokens, err := auth.NewTokens([]auth.Token{token})
		if err != nil {
			t.Fatal(err)
		}
		caller, _ := tokens.Lookup(old)
		at := time.Now().Add(time.Hour)
		revoked := auth.Revocation{Name: "a", SHA256: oldSum, At: at}
		if err := tokens.Replace([]auth.Token{token}, revoked); err != nil {
			t.Fatal(err)
		}
		counts := func(when string, wantOld, wantNext, wantCaller bool) {
			t.Helper()
			_, gotOld := tokens.Lookup(old)
			_, gotNext := tokens.Lookup(next)
			if got := tokens.Count(caller); gotOld != wantOld || gotNext != wantNext || got != wantCaller {
				t.Errorf("%s: old, next, Count = %v, %v, %v; want %v, %v, %v", when, gotOld, gotNext, got, wantOld, wantNext, wantCaller)
			}
		}
		counts("before", true, false, true)
		token.SHA256 = nextSum
		if err := tokens.Replace([]auth.Token{token}, revoked); err != nil {
			t.Fatal(err)
		}
		counts("with the next one", true, true, true)
		if next := tokens.NextEnd(); !next.Equal(at) {
			t.Errorf("NextEnd = %v, want %v", next, at)
		}
		if list := tokens.List(); len(list) != 2 || !list[0].Revoked.IsZero() || !list[1].Revoked.Equal(at) {
			t.Errorf("List = %+v, want the next one, and the old one with its end", list)
		}
		if got := tokens.Digests("a"); len(got) != 2 {
			t.Errorf("Digests = %v, want both", got)
		}
		<-time.After(time.Hour)
		counts("when it is revoked", false, true, false)
		if next := tokens.NextEnd(); !next.IsZero() {
			t.Errorf("NextEnd = %v, want none", next)
		}
		if end, ok := tokens.Ended(old); !ok || !end.Revoked || end.Name != "a" || !end.At.Equal(at) {
			t.Errorf("Ended = %+v, %v; want that it was revoked", end, ok)
		}
		if list := tokens.List(); len(list) != 1 {
			t.Errorf("List = %+v, want the next one only", list)
		}
		token.SHA256 = oldSum // the configuration lists it again
		if err := tokens.Replace([]auth.Token{token}, revoked); err != nil {
			t.Fatal(err)
		}
		counts("put back", false, false, false)
	})
}

// TestRevokedAndClockSetBack checks that a revoked token stays invalid if the clock is set
// back to before the revocation.
func TestRevokedAndClockSetBack(t *testing.T) {
	secret, sum := auth.NewToken()
	later := time.Now().Add(time.Hour).UTC() // by the wall clock, as it is now
	for _, tt := range []struct {
		name    string
		revoked auth.Revocation
		want    bool
	}{
		{"its grace goes on", auth.Revocation{At: later, Ends: time.Now().Add(time.Hour)}, true},
		{"its grace is over", auth.Revocation{At: later, Ends: time.Now()}, false},
		{"it has ended", auth.Revocation{At: later, Ended: true}, false},
	} {
		tt.revoked.Name, tt.revoked.SHA256 = "a", sum
		tokens, err := auth.NewTokens([]auth.Token{{Name: "a", SHA256: sum, User: "u", Roles: auth.Agent}}, tt.revoked)
		if err != nil {
			t.Fatal(err)
		}
		_, ok := tokens.Lookup(secret)
		end, ended := tokens.Ended(secret)
		if ok != tt.want || ended == tt.want || end.Revoked == tt.want {
			t.Errorf("%s: Lookup = %v, Ended = %+v, %v; want %v", tt.name, ok, end, ended, tt.want)
		}
	}
}

// TestLookupFrom checks which accounts may use a token.
func TestLookupFrom(t *testing.T) {
	own, other := os.Geteuid(), os.Geteuid()+1000
	for _, tt := range []struct {
		name    string
		account auth.Account
		uid     int
		err     error
		refused string
	}{
		{name: "the host's", uid: own},
		{name: "root", uid: 0, account: auth.Account{Name: "ci", UID: other}},
		{name: "another", uid: other, refused: "it was sent by uid " + strconv.Itoa(other)},
		{name: "any", uid: other, account: auth.Account{Name: auth.AnyAccount}},
		{name: "the one that is named", uid: other, account: auth.Account{Name: "ci", UID: other}},
		{name: "another than the one that is named", uid: other + 1, account: auth.Account{Name: "ci", UID: other}, refused: "for another account (ci, uid "},
		{name: "not known", err: errors.New("no such connection"), refused: "the account that sent it is not known: no such connection"},
		{name: "not known, and any", err: errors.New("no such connection"), account: auth.Account{Name: auth.AnyAccount}},
		{name: "a system that never tells", err: auth.ErrNeverTold},
		{name: "a system that tells, and cannot", err: fmt.Errorf("open /proc/self/net/tcp: %w", syscall.ENOSYS), refused: "the account that sent it is not known: open /proc/self/net/tcp: function not implemented"},
		{name: "a table that cannot be read", err: syscall.EOPNOTSUPP, refused: "the account that sent it is not known: operation not supported"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			secret, sum := auth.NewToken()
			tokens, err := auth.NewTokens([]auth.Token{{Name: "a", SHA256: sum, User: "u", Roles: auth.Agent, Account: tt.account}})
			if err != nil {
				t.Fatal(err)
			}
			_, ok, err := tokens.LookupFrom(secret, func() (int, error) { return tt.uid, tt.err })
			if ok != (tt.refused == "") || ok != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("LookupFrom = %v, %v; want refused with %q", ok, err, tt.refused)
			}
			if used := !tokens.List()[0].LastUsed.IsZero(); used != ok {
				t.Errorf("it counts as used: %v, want %v", used, ok)
			}
		})
	}
}
