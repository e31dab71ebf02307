package main

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// callback is where the issuer sends a browser with a code. Nothing listens there.
const callback = "http://127.0.0.1:1/callback"

var formAction = regexp.MustCompile(`action="([^"]+)" method="post"`)

// browse opens a page of an issuer as a browser of a person does, who logs in and agrees. It returns
// what the issuer sends to the client.
func browse(ctx context.Context, page, person string) (url.Values, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	browser := http.Client{Jar: jar, CheckRedirect: func(next *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(next.URL.String(), callback) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	for _, prompt := range []string{"login", "consent", ""} {
		if err != nil {
			return nil, err
		}
		answer, err := browser.Do(request)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, err
		}
		if err := answer.Body.Close(); err != nil {
			return nil, err
		}
		if to, err := answer.Location(); err == nil {
			return to.Query(), nil
		}
		form := formAction.FindSubmatch(text)
		if form == nil || !strings.Contains(string(text), fmt.Sprintf("value=%q", prompt)) {
			return nil, fmt.Errorf("the issuer answers %s instead of its form %q: %s", answer.Status, prompt, text)
		}
		fields := url.Values{"prompt": {prompt}, "login": {person}, "password": {"any"}}
		if request, err = http.NewRequestWithContext(ctx, http.MethodPost, html.UnescapeString(string(form[1])), strings.NewReader(fields.Encode())); err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return nil, fmt.Errorf("the issuer does not send %s back to its client", person)
}

// login connects an MCP client that knows only the address of the host and registers itself at the
// issuer that it finds. It returns what the client got as an access token, too.
func (h *host) login(t *testing.T, person string) (connected *mcp.ClientSession, token string, err error) {
	t.Helper()
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "test", RedirectURIs: []string{callback}, TokenEndpointAuthMethod: "none",
		}},
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			if asked, err := url.Parse(args.URL); err != nil || asked.Query().Get("code_challenge_method") != "S256" {
				return nil, fmt.Errorf("the client asks for a code without PKCE: %s, %w", args.URL, err)
			}
			got, err := browse(ctx, args.URL, person)
			return &auth.AuthorizationResult{Code: got.Get("code"), State: got.Get("state"), Iss: got.Get("iss")}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	connected, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: h.mcp, OAuthHandler: handler}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	source, noSource := handler.TokenSource(t.Context())
	if noSource != nil || source == nil {
		t.Fatalf("%s has no token: %v, %v", person, noSource, err)
	}
	got, noToken := source.Token()
	if noToken != nil {
		t.Fatal(noToken)
	}
	return connected, got.AccessToken, err
}

// TestPeopleLogIn has people log in at a real issuer with a browser: the authorization code flow with
// PKCE. The roles of their groups, which a claim within a claim lists, decide what they may do.
func TestPeopleLogIn(t *testing.T) {
	t.Parallel()
	const audience = "https://tools.example.com"
	issuer := startIssuer(t, audience)
	h := serve(t, writeConfig(t, listening+writing+fmt.Sprintf(`
auth {
  issuer "corp" {
    url          = %q
    audience     = %q
    groups_claim = "realm_access.roles"
    roles        = { leads = ["approver"], tools = ["agent"] }
    scopes       = ["openid", "tools"]
  }
}
`, issuer.url, audience)))

	// What a client that knows only the address is told.
	refused, err := http.Post(h.mcp, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = refused.Body.Close() // is not read
	at := regexp.MustCompile(`resource_metadata="([^"]+)"`).FindStringSubmatch(refused.Header.Get("Www-Authenticate"))
	if refused.StatusCode != http.StatusUnauthorized || at == nil {
		t.Fatalf("without a token: %s, %v", refused.Status, refused.Header)
	}
	var told struct {
		Servers []string `json:"authorization_servers"` //nolint:tagliatelle // the standard's name
	}
	decode(t, h.must(t, http.StatusOK, "GET", strings.TrimPrefix(at[1], h.url), "", ""), &told)
	if !slices.Equal(told.Servers, []string{issuer.url}) {
		t.Fatalf("the metadata at %s names the issuers %v, want %s", at[1], told.Servers, issuer.url)
	}

	adas, ada, err := h.login(t, "ada")
	if err != nil {
		t.Fatal(err)
	}
	defer adas.Close()
	s := &session{adas}
	if got := s.must(t, "read_file", map[string]any{"path": "hello.txt"}); got != "hello, world\n" {
		t.Errorf("read_file = %q", got)
	}
	_, bea, err := h.login(t, "bea")
	if err == nil {
		t.Error("the client of an approver, who makes no calls, connects")
	}
	if _, _, err := h.login(t, "guest"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("who has no role connects: %v", err)
	}

	h.decideAs(t, ada, bea, "ada@corp", "bea@corp")
}
