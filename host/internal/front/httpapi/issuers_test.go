package httpapi_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/auth/oidc"
	"github.com/toolhost/toolhost/host/internal/auth/oidc/oidctest"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// withIssuer starts a host with one issuer, "corp", whose group leads approves and whose group ops
// administers.
func withIssuer(t *testing.T, opts httpapitest.Options, change func(*oidc.Issuer)) (*httpapitest.Host, *oidctest.Issuer, *oidc.Issuers) {
	t.Helper()
	issuer := oidctest.Start(t)
	settings := issuer.Settings("corp")
	settings.Roles = map[string]auth.Roles{"leads": auth.Approver, "ops": auth.Admin}
	if change != nil {
		change(&settings)
	}
	issuers := oidc.New(oidc.Options{Issuers: []oidc.Issuer{settings}})
	t.Cleanup(func() { _ = issuers.Close() })
	opts.Issuers = issuers
	return httpapitest.Start(t, opts), issuer, issuers
}

// TestAccessTokens uses routes with access tokens, and the control socket, where none is valid.
func TestAccessTokens(t *testing.T) {
	h, issuer, _ := withIssuer(t, httpapitest.Options{MCP: true}, nil)
	agent := issuer.Token(t, nil)
	lead := issuer.Token(t, map[string]any{"sub": "bea", "groups": []string{"leads"}})
	admin := issuer.Token(t, map[string]any{"sub": "root", "groups": []string{"ops"}})
	for _, tt := range []struct {
		who, token, method, path, body string
		want                           int
	}{
		{"an agent", agent, "POST", "/v1/calls", `{"tool":"look"}`, http.StatusOK},
		{"an agent", agent, "GET", "/v1/approvals", "", http.StatusForbidden},
		{"an agent", agent, "GET", "/v1/journal", "", http.StatusForbidden},
		{"an approver", lead, "POST", "/v1/calls", `{"tool":"look"}`, http.StatusForbidden},
		{"an approver", lead, "GET", "/v1/approvals", "", http.StatusOK},
		{"an approver", lead, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, http.StatusForbidden},
		{"an admin", admin, "GET", "/v1/journal", "", http.StatusOK},
		{"a token of ours", h.Agent, "POST", "/v1/calls", `{"tool":"look"}`, http.StatusOK},
	} {
		if got := ask(t, h, tt.token, tt.method, tt.path, tt.body); got.status != tt.want {
			t.Errorf("%s: %s %s = %d, want %d: %s", tt.who, tt.method, tt.path, got.status, tt.want, got.body)
		}
	}
	askControl(t, h, agent, "GET", "/v1/tools", "").problem(t, http.StatusUnauthorized, "not valid here")
	for _, tt := range []struct{ name, token, want string }{
		{"another audience", issuer.Token(t, map[string]any{"aud": "x"}), "another audience"},
		{"expired", issuer.Token(t, map[string]any{"exp": 1}), "it expired at 1970-01-01T00:00:01Z"},
		{"a user that would break a line", issuer.Token(t, map[string]any{"sub": "a\nb"}), "cannot name a user"},
	} {
		ask(t, h, tt.token, "GET", "/v1/tools", "").problem(t, http.StatusUnauthorized, tt.want)
	}
	for range 60 { // each 6 seconds allow one more
		last := ask(t, h, issuer.Token(t, map[string]any{"exp": 1, "jti": "again"})[:200]+"..", "GET", "/v1/tools", "")
		if last.status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("an invalid token may be sent again and again")
}

// TestOutageRefuses asks while the issuer is down: the answer is the same each time, and tells it.
func TestOutageRefuses(t *testing.T) {
	h, issuer, _ := withIssuer(t, httpapitest.Options{}, nil)
	token := issuer.Token(t, nil)
	issuer.Stop()
	for range 20 {
		ask(t, h, token, "GET", "/v1/tools", "").problem(t, http.StatusUnauthorized, "keys cannot be fetched")
	}
	if got := ask(t, h, h.Agent, "GET", "/v1/tools", ""); got.status != http.StatusOK {
		t.Errorf("a token of ours: %d %s", got.status, got.body)
	}
}

func TestRolelessUser(t *testing.T) {
	h, issuer, _ := withIssuer(t, httpapitest.Options{}, func(i *oidc.Issuer) { i.Roles["tools"] = auth.Agent })
	got := ask(t, h, issuer.Token(t, nil), "GET", "/v1/tools", "")
	got.problem(t, http.StatusForbidden, "none of the user's groups has a role")
	if challenge := got.header.Get("WWW-Authenticate"); challenge != "" {
		t.Errorf("WWW-Authenticate = %q: to log in again does not help", challenge)
	}
	if got := ask(t, h, issuer.Token(t, map[string]any{"groups": "tools"}), "GET", "/v1/tools", ""); got.status != http.StatusOK {
		t.Errorf("a member of the group: %d %s", got.status, got.body)
	}
}

// TestApproversOfAnIssuer: an approver decides the calls of the issuer's other users, and neither
// its own nor those of others.
func TestApproversOfAnIssuer(t *testing.T) {
	h, issuer, _ := withIssuer(t, httpapitest.Options{Patience: time.Millisecond}, nil)
	lead := issuer.Token(t, map[string]any{"sub": "bea", "groups": []string{"leads"}})
	waiting := func(token string) string { return pend(t, h, token, `{"tool":"write"}`).ApprovalID }
	adas, own, anns := waiting(issuer.Token(t, nil)), waiting(issuer.Token(t, map[string]any{"sub": "bea"})), waiting(h.Agent)
	var list []struct {
		ID string `json:"id"`
	}
	ask(t, h, lead, "GET", "/v1/approvals", "").into(t, http.StatusOK, &list)
	if len(list) != 1 || list[0].ID != adas {
		t.Errorf("the approver sees %+v, want %s only", list, adas)
	}
	decision := seen(t, h, adas, "")
	for _, id := range []string{own, anns} {
		ask(t, h, lead, "GET", "/v1/approvals/"+id, "").problem(t, http.StatusNotFound, "")
		ask(t, h, lead, "POST", "/v1/approvals/"+id+"/approve", decision).problem(t, http.StatusNotFound, "")
	}
	if got := ask(t, h, lead, "POST", "/v1/approvals/"+adas+"/approve", decision); got.status != http.StatusOK {
		t.Errorf("approve = %d %s", got.status, got.body)
	}
	admin := issuer.Token(t, map[string]any{"sub": "root", "groups": []string{"ops"}})
	ask(t, h, admin, "POST", "/v1/approvals/"+own+"/reject", decision).problem(t, http.StatusForbidden, "approver")
	if got := ask(t, h, admin, "GET", "/v1/approvals/"+own, ""); !strings.Contains(string(got.body), `"issuer":"corp"`) {
		t.Errorf("an admin does not read who may decide: %s", got.body)
	}
}

// TestMetadata finds the issuers as clients do.
func TestMetadata(t *testing.T) {
	type metadata struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`    //nolint:tagliatelle // the standard's name
		Methods  []string `json:"bearer_methods_supported"` //nolint:tagliatelle // the standard's name
		Scopes   []string `json:"scopes_supported"`         //nolint:tagliatelle // the standard's name
		Name     string   `json:"resource_name"`            //nolint:tagliatelle // the standard's name
	}
	const at = "/.well-known/oauth-protected-resource"
	h, issuer, issuers := withIssuer(t, httpapitest.Options{}, nil)
	name := strings.TrimPrefix(h.URL, "http://")
	for _, tt := range []struct {
		audience, path, want, metadata string
	}{
		// The audience is no address of this host: the client's own is the resource.
		{"api://tools", "/mcp", h.URL + "/mcp", h.URL + at + "/mcp"},
		{"api://tools", "/mcp/readers", h.URL + "/mcp/readers", h.URL + at + "/mcp/readers"},
		{"api://tools", "", h.URL, h.URL + at},
		{"https://elsewhere.example.com", "/mcp", h.URL + "/mcp", h.URL + at + "/mcp"},
		// It is: tokens for it are valid at all paths below. A proxy may serve it over TLS.
		{"https://" + name, "/mcp", "https://" + name, "https://" + name + at},
		{"https://" + name + "/", "/mcp/readers", "https://" + name + "/", "https://" + name + at},
		{"https://" + name + "/mcp", "/mcp", "https://" + name + "/mcp", "https://" + name + at + "/mcp"},
		{"https://" + name + "/mcp", "/mcp/readers", "https://" + name + "/mcp", "https://" + name + at + "/mcp"},
		{"https://" + name + "/mc", "/mcp", h.URL + "/mcp", h.URL + at + "/mcp"},
	} {
		settings := issuer.Settings("corp")
		settings.Audience, settings.Scopes = tt.audience, []string{"openid", "groups"}
		issuers.Replace([]oidc.Issuer{settings})
		var got metadata
		ask(t, h, "", "GET", at+tt.path, "").into(t, http.StatusOK, &got)
		want := metadata{tt.want, []string{issuer.URL}, []string{"header"}, []string{"openid", "groups"}, "toolhost"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("audience %s, %s: -want +got\n%s", tt.audience, tt.path, diff)
		}
		path := tt.path
		if path == "" {
			path = "/v1/tools"
		}
		for token, suffix := range map[string]string{"": "", "eyJ.x.y": `, error="invalid_token"`} {
			challenge := ask(t, h, token, "GET", path, "").header.Get("WWW-Authenticate")
			if want := `Bearer realm="toolhost", resource_metadata="` + tt.metadata + `", scope="openid groups"` + suffix; challenge != want {
				t.Errorf("audience %s, %s with the token %q: WWW-Authenticate = %s, want %s", tt.audience, tt.path, token, challenge, want)
			}
		}
	}
	// The SDK accepts what it reads: the resource must be the address that it knows.
	for _, path := range []string{"", "/mcp"} {
		settings := issuer.Settings("corp")
		settings.Audience = h.URL + path
		issuers.Replace([]oidc.Issuer{settings})
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		got, err := oauthex.GetProtectedResourceMetadata(t.Context(), h.URL+at+path, h.URL+path, client)
		if err != nil || len(got.AuthorizationServers) != 1 {
			t.Errorf("the SDK reads %+v, %v", got, err)
		}
	}
	askControl(t, h, "", "GET", at, "").problem(t, http.StatusNotFound, "")
	ask(t, h, "", "GET", at, "", "Host: evil.example.com").problem(t, http.StatusForbidden, "")
	issuers.Replace(nil)
	ask(t, h, "", "GET", at, "").problem(t, http.StatusNotFound, "no issuer")
	if got := ask(t, h, "", "GET", "/mcp", "").header.Get("WWW-Authenticate"); got != `Bearer realm="toolhost"` {
		t.Errorf("without an issuer, WWW-Authenticate = %s", got)
	}
}

// TestAccessTokensFromElsewhere: over TLS, users of an issuer come from other machines.
func TestAccessTokensFromElsewhere(t *testing.T) {
	cert, transport := secured(t, "tools.example.com")
	h, issuer, _ := withIssuer(t, httpapitest.Options{
		TLS: cert.TLS(), IsName: cert.Certificate().Covers, Wrap: func(l net.Listener) net.Listener { return elsewhere{l} },
	}, nil)
	transport.TLSClientConfig.ServerName = "tools.example.com"
	const host = "Host: tools.example.com"
	if got := send(t, transport, newRequest(t, h.URL, issuer.Token(t, nil), "GET", "/v1/tools", "", host)); got.status != http.StatusOK {
		t.Errorf("an access token from elsewhere = %d %s", got.status, got.body)
	}
	for at, want := range map[string]string{
		host:                   "https://tools.example.com/.well-known/oauth-protected-resource", // the audience
		"Host: 192.0.2.1:7780": "https://192.0.2.1:7780/.well-known/oauth-protected-resource/mcp",
	} {
		got := send(t, transport, newRequest(t, h.URL, "", "GET", "/mcp", "", at)).header.Get("WWW-Authenticate")
		if !strings.Contains(got, `resource_metadata="`+want+`"`) {
			t.Errorf("%s: WWW-Authenticate = %s, want %s", at, got, want)
		}
	}
}

// TestRemovedIssuerEndsStreams removes an issuer whose user listens.
func TestRemovedIssuerEndsStreams(t *testing.T) {
	h, issuer, issuers := withIssuer(t, httpapitest.Options{Configure: func(s *httpapi.Server) { s.SetKeepAlive(time.Millisecond) }}, nil)
	token := issuer.Token(t, nil)
	request := newRequest(t, h.URL, token, "GET", "/v1/events", "")
	stream, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("GET /v1/events = %s", stream.Status)
	}
	changed := issuer.Settings("corp")
	changed.Audience = "another"
	issuers.Replace([]oidc.Issuer{changed})
	// A stream that does not end would block the test until its timeout.
	for buffer := make([]byte, 1<<10); ; {
		if _, err := stream.Body.Read(buffer); err != nil {
			break
		}
	}
	ask(t, h, token, "GET", "/v1/tools", "").problem(t, http.StatusUnauthorized, "another audience")
}
