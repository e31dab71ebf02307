package oidc_test

import (
	"bytes"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/host/internal/auth/oidc/oidctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that a test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// host verifies the tokens of an issuer, "corp", with a clock and a log.
type host struct {
	*oidc.Issuers

	issuer *oidctest.Issuer
	clock  *clock
	log    *bytes.Buffer
}

func start(tb testing.TB, change func(*oidc.Issuer)) *host {
	tb.Helper()
	h := &host{issuer: oidctest.Start(tb), clock: &clock{at: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}, log: new(bytes.Buffer)}
	h.issuer.Now = h.clock.now
	settings := h.issuer.Settings("corp")
	if change != nil {
		change(&settings)
	}
	h.Issuers = oidc.New(h.options(settings))
	tb.Cleanup(func() { _ = h.Close() })
	return h
}

func (h *host) options(list ...oidc.Issuer) oidc.Options {
	return oidc.Options{Issuers: list, Now: h.clock.now, Logger: hclog.New(&hclog.LoggerOptions{Output: h.log, Mutex: new(sync.Mutex)})}
}

// user verifies a token and returns its user, or why it has none.
func (h *host) user(t *testing.T, token string) string {
	t.Helper()
	caller, err := h.Verify(t.Context(), token)
	if err == nil {
		return caller.User
	}
	wrong, ok := errors.AsType[*oidc.Error](err)
	if !ok || caller.User != "" || caller.Roles != 0 {
		t.Fatalf("Verify = %+v, %v; want an *oidc.Error and no caller", caller, err)
	}
	return wrong.Reason
}

// want checks that a token has a user, or is refused for a reason.
func (h *host) want(t *testing.T, what, token, want string) {
	t.Helper()
	got := h.user(t, token)
	if strings.Contains(want, "@") && got != want || !strings.Contains(got, want) {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func TestCaller(t *testing.T) {
	h := start(t, func(i *oidc.Issuer) {
		i.UserClaim, i.GroupsClaim = "email", "teams"
		i.Roles = map[string]auth.Roles{"leads": auth.Approver, "ops": auth.Admin, "tools": auth.Agent}
	})
	for _, tt := range []struct {
		name   string
		teams  any
		want   auth.Roles
		groups []string
	}{
		{"an agent", []string{"tools"}, auth.Agent, []string{"tools@corp"}},
		{"one group as a text", "tools", auth.Agent, []string{"tools@corp"}},
		{"an approver makes no calls", []string{"tools", "leads"}, auth.Approver, []string{"tools@corp", "leads@corp"}},
		{"an approver and admin", []string{"ops", "others", "leads"}, auth.Approver | auth.Admin, []string{"ops@corp", "others@corp", "leads@corp"}},
		{"no group with a role", []string{"others"}, 0, nil},
		{"no group", nil, 0, nil},
	} {
		caller, err := h.Verify(t.Context(), h.issuer.Token(t, map[string]any{"email": "ada@example.com", "teams": tt.teams}))
		if tt.want == 0 {
			if wrong, ok := errors.AsType[*oidc.Error](err); !ok || !wrong.Roleless || caller.User != "" {
				t.Errorf("%s: Verify = %+v, %v; want no caller, since it has no role", tt.name, caller, err)
			}
			continue
		}
		want := auth.Caller{
			User: "ada@example.com@corp", Client: "corp", Token: "corp", Issuer: "corp", Digest: caller.Digest,
			Roles: tt.want, Groups: tt.groups, Expires: h.clock.now().Add(5 * time.Minute).Local(),
		}
		if diff := cmp.Diff(want, caller); err != nil || diff != "" || len(caller.Digest) != 64 {
			t.Errorf("%s: Verify: %v\n-want +got\n%s", tt.name, err, diff)
		}
	}
	// Without a group for agents, everybody is one who is nothing else.
	all := start(t, func(i *oidc.Issuer) { i.Roles = map[string]auth.Roles{"leads": auth.Approver} })
	for group, want := range map[string]auth.Roles{"leads": auth.Approver, "others": auth.Agent} {
		if caller, err := all.Verify(t.Context(), all.issuer.Token(t, map[string]any{"groups": []string{group}})); err != nil || caller.Roles != want {
			t.Errorf("a member of %s: %v, %v; want %v", group, caller.Roles, err, want)
		}
	}
}

// TestClaims changes single claims of a valid token.
func TestClaims(t *testing.T) {
	h := start(t, nil)
	now := h.clock.now().Unix()
	skew := int64(oidc.Skew / time.Second)
	for _, tt := range []struct {
		name    string
		changes map[string]any
		want    string
	}{
		{"none", nil, "ada@corp"},
		{"another audience", map[string]any{"aud": "https://other.example.com"}, "another audience"},
		{"the audience as a part", map[string]any{"aud": oidctest.Audience + ".evil"}, "another audience"},
		{"one of its audiences", map[string]any{"aud": []string{"x", oidctest.Audience}}, "ada@corp"},
		{"no audience", map[string]any{"aud": nil}, "another audience"},
		{"an audience that is a number", map[string]any{"aud": 5}, "its claims"},
		{"another issuer", map[string]any{"iss": "https://evil.example.com"}, "does not list"},
		{"its issuer with a slash", map[string]any{"iss": h.issuer.URL + "/"}, "does not list"},
		{"no issuer", map[string]any{"iss": nil}, "does not list"},
		{"an issuer that is a list", map[string]any{"iss": []string{h.issuer.URL}}, "its claims"},
		{"no exp", map[string]any{"exp": nil}, "no exp"},
		{"a null exp", map[string]any{"exp": (*int)(nil)}, "no exp"},
		{"exp as a text", map[string]any{"exp": strconv.FormatInt(now+300, 10)}, "its claims"},
		{"exp beyond any time", map[string]any{"exp": 1e300}, "its claims"},
		{"expired", map[string]any{"exp": now - skew - 1}, "expired at 2026-11-28T11:58:59Z"},
		{"expired within the skew", map[string]any{"exp": now - skew}, "ada@corp"},
		{"not yet valid", map[string]any{"nbf": now + skew + 1}, "not valid yet"},
		{"nearly valid", map[string]any{"nbf": now + skew}, "ada@corp"},
		{"issued in the future", map[string]any{"iat": now + skew + 1}, "not valid yet"},
		{"no iat", map[string]any{"iat": nil}, "ada@corp"},
		{"no user", map[string]any{"sub": nil}, "which names the user"},
		{"an empty user", map[string]any{"sub": ""}, "cannot name a user"},
		{"a user that is a number", map[string]any{"sub": 7}, "its claims"},
		{"a user with a line break", map[string]any{"sub": "ada\nroot"}, "cannot name a user"},
		{"a user with an escape", map[string]any{"sub": "ada\x1b[2K"}, "cannot name a user"},
		{"a user with an invisible letter", map[string]any{"sub": "ada\u200b"}, "cannot name a user"},
		{"a user with a space behind", map[string]any{"sub": "ada "}, "cannot name a user"},
		{"a user of 10 KB", map[string]any{"sub": strings.Repeat("a", 10<<10)}, "cannot name a user"},
		{"a user just too long", map[string]any{"sub": strings.Repeat("a", auth.MaxUser-len("@corp")+1)}, "cannot name a user"},
		{"a user of the longest name", map[string]any{"sub": strings.Repeat("a", auth.MaxUser-len("@corp"))}, strings.Repeat("a", auth.MaxUser-len("@corp")) + "@corp"},
		{"a user that looks like a path", map[string]any{"sub": ".."}, "..@corp"},
		{"a user that looks like another issuer's", map[string]any{"sub": "ada@partner"}, "ada@partner@corp"},
		{"groups that are an object", map[string]any{"groups": map[string]any{"a": 1}}, "list of texts"},
		{"a group that is a number", map[string]any{"groups": []any{"a", 1}}, "list of texts"},
		{"a group with a line break", map[string]any{"groups": []any{"a\nb"}}, "visible characters"},
		{"a group of 10 KB", map[string]any{"groups": []any{strings.Repeat("g", 10<<10)}}, "visible characters"},
		{"groups that are elsewhere", map[string]any{"_claim_names": map[string]any{"groups": "src1"}}, "elsewhere"},
		{"other claims that are elsewhere", map[string]any{"_claim_names": map[string]any{"address": "src1"}}, "ada@corp"},
	} {
		h.want(t, tt.name, h.issuer.Token(t, tt.changes), tt.want)
	}
	if got := h.issuer.Requests(oidctest.KeysPath); got != 1 {
		t.Errorf("the keys were fetched %d times, want once", got)
	}
}

// TestNestedClaims reads the user and the groups from claims within claims.
func TestNestedClaims(t *testing.T) {
	h := start(t, func(i *oidc.Issuer) { i.UserClaim, i.GroupsClaim = "person.name", "realm_access.roles" })
	within := func(name string, value any) map[string]any { return map[string]any{name: value} }
	person := within("name", "bea")
	for _, tt := range []struct {
		name    string
		changes map[string]any
		user    string // or why there is none
		groups  []string
	}{
		{"both", map[string]any{"person": person, "realm_access": within("roles", []string{"dev", "ops"})}, "bea@corp", []string{"dev@corp", "ops@corp"}},
		{"no groups", map[string]any{"person": person}, "bea@corp", nil},
		{"an object without groups", map[string]any{"person": person, "realm_access": within("verify_caller", true)}, "bea@corp", nil},
		{"no object", map[string]any{"person": person, "realm_access": "dev"}, "not an object", nil},
		{"no list", map[string]any{"person": person, "realm_access": within("roles", within("dev", true))}, "list of texts", nil},
		{"a claim of the whole name", map[string]any{"person": person, "realm_access": within("roles", "dev"), "realm_access.roles": "ops"}, "bea@corp", []string{"ops@corp"}},
		{"groups that are elsewhere", map[string]any{"person": person, "_claim_names": within("realm_access", "src1")}, "elsewhere", nil},
		{"no user", map[string]any{"realm_access": within("roles", "dev")}, "which names the user", nil},
		{"a user that is no object", map[string]any{"person": "bea"}, "which names the user", nil},
		{"an object as the user", map[string]any{"person": within("name", person)}, "which names the user", nil},
	} {
		token := h.issuer.Token(t, tt.changes)
		h.want(t, tt.name, token, tt.user)
		caller, _ := h.Verify(t.Context(), token) // want has told of an error
		if diff := cmp.Diff(tt.groups, caller.Groups); diff != "" {
			t.Errorf("%s: the groups: -want +got\n%s", tt.name, diff)
		}
	}
}

// TestAudience compares audiences exactly, except for the "/" of an address without a path.
func TestAudience(t *testing.T) {
	for _, tt := range []struct {
		configured, aud string
		want            bool
	}{
		{"https://tools.example.com", "https://tools.example.com", true},
		{"https://tools.example.com", "https://tools.example.com/", true},
		{"https://tools.example.com/", "https://tools.example.com", true},
		{"https://tools.example.com", "https://tools.example.com//", false},
		{"https://tools.example.com", "http://tools.example.com", false},
		{"https://tools.example.com", "https://TOOLS.example.com", false},
		{"https://tools.example.com", "https://tools.example.com/mcp", false},
		{"https://tools.example.com/mcp", "https://tools.example.com/mcp", true},
		{"https://tools.example.com/mcp", "https://tools.example.com/mcp/", false},
		{"https://tools.example.com/mcp", "https://tools.example.com", false},
		{"https://tools.example.com?a=b", "https://tools.example.com?a=b/", false},
		{"api://tools", "api://tools", true},
		{"api://tools", "api://tools/", false},
		{"tools", "tools/", false},
		{"/", "", false},
	} {
		h := start(t, func(i *oidc.Issuer) { i.Audience = tt.configured })
		want := "another audience"
		if tt.want {
			want = "ada@corp"
		}
		h.want(t, "audience "+tt.configured+", aud "+tt.aud, h.issuer.Token(t, map[string]any{"aud": tt.aud}), want)
	}
}

func TestEmailMustBeVerified(t *testing.T) {
	h := start(t, func(i *oidc.Issuer) { i.UserClaim = "email" })
	for _, tt := range []struct {
		verified any
		want     string
	}{
		{nil, "ada@example.com@corp"},
		{true, "ada@example.com@corp"},
		{false, "not verified"},
		{"true", "not verified"},
	} {
		h.want(t, "email_verified", h.issuer.Token(t, map[string]any{"email": "ada@example.com", "email_verified": tt.verified}), tt.want)
	}
}

// TestKindOfToken tells access tokens from other tokens of the same issuer and audience.
func TestKindOfToken(t *testing.T) {
	h := start(t, nil)
	for _, tt := range []struct {
		typ   any
		claim string
		value any
		want  string
	}{
		{"at+jwt", "", nil, "ada@corp"},
		{"application/at+jwt", "", nil, "ada@corp"},
		{"AT+JWT", "nonce", "n", "ada@corp"},
		{"JWT", "", nil, "ada@corp"},
		{"", "", nil, "ada@corp"},
		{"logout+jwt", "", nil, "type"},
		{"dpop+jwt", "", nil, "type"},
		{"JWT", "nonce", "n", "ID token"},
		{"JWT", "at_hash", "h", "ID token"},
		{"JWT", "c_hash", "h", "ID token"},
		{"JWT", "typ", "ID", "ID token"},
		{"JWT", "typ", "Refresh", "ID token"},
		{"JWT", "typ", "Bearer", "ada@corp"},
		{"JWT", "token_use", "id", "ID token"},
		{"JWT", "token_use", "access", "ada@corp"},
	} {
		changes := map[string]any{"jti": tt.typ}
		if tt.claim != "" {
			changes[tt.claim] = tt.value
		}
		h.want(t, "typ "+tt.typ.(string)+", "+tt.claim, h.issuer.Key().Sign(t, h.issuer.Claims(changes), map[string]any{"typ": tt.typ}), tt.want)
	}
}

func TestDuplicateClaims(t *testing.T) {
	h := start(t, nil)
	payload := `{"iss":"` + h.issuer.URL + `","aud":"` + oidctest.Audience + `","exp":` + strconv.FormatInt(h.clock.now().Unix()+300, 10) + `,"sub":"ada"%s}`
	for extra, want := range map[string]string{
		"":                               "ada@corp",
		`,"sub":"root"`:                  "its claims",
		`,"iss":"` + h.issuer.URL + `"`:  "its claims",
		`,"groups":["a"],"groups":["b"]`: "its claims",
		`,"Sub":"root"`:                  "ada@corp", // another claim: names are case-sensitive
		`,"x":{"y":1,"y":2}`:             "its claims",
	} {
		h.want(t, "claims with "+extra, h.issuer.Key().SignText(t, strings.Replace(payload, "%s", extra, 1), nil), want)
	}
	for _, payload := range []string{"", "null", "[]", `"x"`, "{", payload + payload} {
		if got := h.user(t, h.issuer.Key().SignText(t, payload, nil)); strings.Contains(got, "@") {
			t.Errorf("claims %q: %s", payload, got)
		}
	}
}

// TestReplayAfterExpiry sends a token that was valid until it expires, and then again.
func TestReplayAfterExpiry(t *testing.T) {
	h := start(t, nil)
	token := h.issuer.Token(t, nil)
	for range 3 {
		h.want(t, "before it expires", token, "ada@corp")
	}
	h.clock.add(5*time.Minute + oidc.Skew)
	h.want(t, "within the skew", token, "ada@corp")
	h.clock.add(time.Second)
	h.want(t, "after it has expired", token, "expired at")
}

// TestKnownTokensAreBounded verifies more tokens than are remembered.
func TestKnownTokensAreBounded(t *testing.T) {
	h := start(t, nil)
	for n := range oidc.MaxKnown + 50 {
		h.want(t, "a token", h.issuer.Token(t, map[string]any{"jti": strconv.Itoa(n)}), "ada@corp")
	}
	if known := h.Known(); known != oidc.MaxKnown {
		t.Errorf("%d tokens are remembered, want %d", known, oidc.MaxKnown)
	}
}

// TestReplace checks which callers stay valid when the configuration changes.
func TestReplace(t *testing.T) {
	h := start(t, nil)
	token := h.issuer.Token(t, nil)
	caller, err := h.Verify(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	same := h.issuer.Settings("corp")
	other := oidctest.Start(t).Settings("partner")
	changed := func(change func(*oidc.Issuer)) oidc.Issuer {
		issuer := same
		issuer.Roles = maps.Clone(issuer.Roles)
		change(&issuer)
		return issuer
	}
	for _, tt := range []struct {
		name string
		list []oidc.Issuer
		want bool
	}{
		{"the same, and another", []oidc.Issuer{other, same}, true},
		{"another audience", []oidc.Issuer{changed(func(i *oidc.Issuer) { i.Audience = "x" })}, false},
		{"another claim", []oidc.Issuer{changed(func(i *oidc.Issuer) { i.UserClaim = "email" })}, false},
		{"another name", []oidc.Issuer{changed(func(i *oidc.Issuer) { i.Name = "firm" })}, false},
		{"other roles", []oidc.Issuer{changed(func(i *oidc.Issuer) { i.Roles = map[string]auth.Roles{"a": auth.Admin} })}, false},
		{"none", nil, false},
		{"as before", []oidc.Issuer{same}, true},
	} {
		h.Replace(tt.list)
		if got := h.Count(caller); got != tt.want {
			t.Errorf("%s: Count = %v, want %v", tt.name, got, tt.want)
		}
		if names := len(h.List()); names != len(tt.list) {
			t.Errorf("%s: List has %d issuers, want %d", tt.name, names, len(tt.list))
		}
	}
	if !h.Open(caller) {
		t.Error("an open request of a valid token must end")
	}
	h.clock.add(5*time.Minute + oidc.Grace - time.Second)
	if !h.Open(caller) {
		t.Error("an open request ends before the grace is over")
	}
	h.clock.add(time.Second)
	if h.Open(caller) || !h.Count(caller) {
		t.Errorf("after the grace: Open = %v, Count = %v; want that the request ends and its call goes on", h.Open(caller), h.Count(caller))
	}
}

func TestIssuer(t *testing.T) {
	issuer := oidc.Issuer{Name: "corp", Roles: map[string]auth.Roles{"a": auth.Admin}}
	if issuer.Approves() || !(oidc.Issuer{Roles: map[string]auth.Roles{"a": auth.Admin | auth.Approver}}).Approves() {
		t.Error("Approves: want whether a group has the role approver")
	}
	if !issuer.Has(issuer.Qualified("ada")) || issuer.Has("ada") || issuer.Has("ada@corporation") || issuer.Has("corp") {
		t.Error("Has: want the users of the issuer only")
	}
	for text, want := range map[string]string{
		"https://login.example.com":           "",
		"https://login.example.com/realms/a/": "",
		"http://127.0.0.1:8080":               "",
		"http://[::1]:8080":                   "",
		"http://localhost:8080":               "",
		"http://login.example.com":            "only https",
		"http://127.0.0.1.example.com":        "only https",
		"ftp://login.example.com":             "only https",
		"login.example.com":                   "with a host",
		"https:///a":                          "with a host",
		"https://user:pw@login.example.com":   "user or a password",
		"https://login.example.com?x=1":       "no query",
		"https://login.example.com?":          "no query",
		"https://login.example.com#x":         "no query",
		"https://login.example.com/%zz":       "not a URL",
	} {
		err := oidc.CheckURL(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("CheckURL(%q) = %v, want an error with %q", text, err, want)
		}
	}
	for text, want := range map[string]bool{"eyJ.a.b": true, "eyJ.a.b.c.d": true, "th_a.b.c": false, "ey": false, "": false} {
		if oidc.IsToken(text) != want {
			t.Errorf("IsToken(%q) = %v, want %v", text, !want, want)
		}
	}
}
