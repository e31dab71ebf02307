package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// TestLogin: a link opens once, by the form only, into a cookie that scripts and other sites do not
// get.
func TestLogin(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	b := newBrowser(t, h)
	b.get("/").want(t, http.StatusUnauthorized, "You are not logged in", "toolhost console")
	code := link(t, h, h.Approver)
	for range 2 { // a program that looks at links does not open it
		b.get("/login?code="+code).want(t, http.StatusOK, "This browser becomes <b>ann</b> (approver)")
	}
	done := b.send("POST", "/login", url.Values{"code": {code}}).want(t, http.StatusSeeOther)
	cookie := done.header.Get("Set-Cookie")
	for _, part := range []string{"toolhost-", "; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age=43200"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie %s lacks %q", cookie, part)
		}
	}
	if strings.Contains(cookie, code) || done.header.Get("Location") != "/" {
		t.Errorf("the cookie has the code, or it goes on at %s", done.header.Get("Location"))
	}
	b.get("/").want(t, http.StatusOK, "No call waits.")
	newBrowser(t, h).send("POST", "/login", url.Values{"code": {code}}).want(t, http.StatusUnauthorized, "was opened before")
	newBrowser(t, h).get("/login?code=x").want(t, http.StatusUnauthorized)
	b.send("POST", "/logout", url.Values{"csrf": {"x"}}).want(t, http.StatusForbidden)
	page := b.get("/").want(t, http.StatusOK).body
	before := slices.Clone(b.http.Jar.Cookies(mustParse(t, h.URL)))
	b.send("POST", "/logout", b.form(page, "/logout")).want(t, http.StatusSeeOther)
	b.http.Jar.SetCookies(mustParse(t, h.URL), before) // one who copied it
	b.get("/").want(t, http.StatusUnauthorized, "Your login has ended")
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestFixation: a login has a new secret, whatever cookie the browser had; that one ends.
func TestFixation(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	b := loggedIn(t, h, h.Approver)
	planted := slices.Clone(b.http.Jar.Cookies(mustParse(t, h.URL)))
	b.send("POST", "/login", url.Values{"code": {link(t, h, h.Approver)}}).want(t, http.StatusSeeOther)
	b.get("/").want(t, http.StatusOK)
	other := newBrowser(t, h)
	other.http.Jar.SetCookies(mustParse(t, h.URL), planted)
	other.get("/").want(t, http.StatusUnauthorized)
	planted[0].Value = "chosen-by-another"
	other.http.Jar.SetCookies(mustParse(t, h.URL), planted)
	other.send("POST", "/login", url.Values{"code": {link(t, h, h.Approver)}}).want(t, http.StatusSeeOther)
	if now := other.http.Jar.Cookies(mustParse(t, h.URL)); now[0].Value == "chosen-by-another" {
		t.Error("the login took the secret that the browser had")
	}
	// Two cookies of the name are one too many: another host of the machine has set one.
	name := planted[0].Name
	newBrowser(t, h).get("/", "Cookie: "+name+"=a; "+name+"="+b.http.Jar.Cookies(mustParse(t, h.URL))[0].Value).want(t, http.StatusUnauthorized)
}

// TestLoginFollowsItsCredential: a login is valid only while its token is, with the same roles.
func TestLoginFollowsItsCredential(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(tokens []auth.Token, i int) []auth.Token{
		"removed":         func(tokens []auth.Token, i int) []auth.Token { return slices.Delete(tokens, i, i+1) },
		"narrowed":        func(tokens []auth.Token, i int) []auth.Token { tokens[i].Roles = auth.Admin; return tokens },
		"of another user": func(tokens []auth.Token, i int) []auth.Token { tokens[i].User = "eve"; return tokens },
		"rotated": func(tokens []auth.Token, i int) []auth.Token {
			_, tokens[i].SHA256 = auth.NewToken()
			return tokens
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, httpapitest.Options{})
			b := loggedIn(t, h, h.Approver)
			b.get("/").want(t, http.StatusOK)
			tokens := slices.Clone(h.TokenList)
			i := slices.IndexFunc(tokens, func(one auth.Token) bool { return one.Name == "approver" })
			if err := h.Tokens.Replace(change(tokens, i)); err != nil {
				t.Fatal(err)
			}
			if a := b.get("/"); a.status != http.StatusUnauthorized && a.status != http.StatusForbidden {
				t.Errorf("status = %d, want that the login has ended: %s", a.status, a.body)
			}
		})
	}
}

// TestForms: a form that is not of a page of the login does nothing.
func TestForms(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	id := ask(t, h, "hello")
	b, other := loggedIn(t, h, h.Approver), loggedIn(t, h, h.Approver)
	path := "/approvals/" + id + "/approve"
	form := b.form(b.get("/").body, path)
	without := url.Values{"arguments_hash": form["arguments_hash"]}
	b.send("POST", path, without).want(t, http.StatusForbidden, "The form is of another login")
	b.send("POST", path, other.form(other.get("/").body, path)).want(t, http.StatusForbidden)
	b.send("POST", path, form, "Sec-Fetch-Site: cross-site").want(t, http.StatusForbidden)
	b.send("POST", path, form, "Origin: https://evil.example").want(t, http.StatusForbidden)
	b.send("POST", path, url.Values{"csrf": form["csrf"], "message": {strings.Repeat("x", 1<<20)}}).want(t, http.StatusBadRequest, "too large")
	b.get(path).want(t, http.StatusNotFound)
	newBrowser(t, h).send("POST", path, form).want(t, http.StatusUnauthorized)
	if r := b.record(id); r.State != approval.Open {
		t.Errorf("the call is %s, want open", r.State)
	}
}

// TestHeaders: each page refuses frames, inline code, caches and other sites.
func TestHeaders(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	b := loggedIn(t, h, h.Approver)
	for _, path := range []string{"/", "/no/such/page", "/login?code=x", "/batch", "/assets/console.js"} {
		a := b.get(path)
		csp := a.header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: the policy lacks %s: %s", path, part, csp)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: the policy is %s", path, csp)
		}
		for name, want := range map[string]string{
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s = %q, want %q", path, name, got, want)
			}
		}
		if got := a.header.Get("Cache-Control"); got != "no-store" && (!strings.HasPrefix(path, "/assets/") || got != "no-cache") {
			t.Errorf("%s: Cache-Control = %q", path, got)
		}
		if strings.Contains(a.body, "<style") || strings.Contains(a.body, "style=") || strings.Contains(a.body, " onclick") {
			t.Errorf("%s has inline style or code", path)
		}
	}
}

// TestWhoseRequests: the cookie is for the pages, tokens are for the interface, and names of others
// are for neither.
func TestWhoseRequests(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	b := loggedIn(t, h, h.Approver)
	b.get("/", "Host: evil.example").want(t, http.StatusForbidden)
	b.get("/v1/approvals").want(t, http.StatusUnauthorized)
	b.get("/v1/no-such-route").want(t, http.StatusUnauthorized)
	nobody := newBrowser(t, h)
	nobody.get("/", "Authorization: Bearer "+h.Approver).want(t, http.StatusNotFound, "urn:toolhost:problem:not-found")
	for _, path := range []string{"/../etc/passwd", "/assets/../console.go", "/assets/%2e%2e/console.go", "//evil.example/", "/assets/", "/approvals//x"} {
		a := b.get(path)
		if a.status < 400 || a.header.Get("Location") != "" {
			t.Errorf("%s: status = %d, Location = %q, want an error", path, a.status, a.header.Get("Location"))
		}
	}
	// No page goes on at an address that a request names.
	done := newBrowser(t, h).send("POST", "/login?next=//evil.example&url=https://evil.example", url.Values{"code": {link(t, h, h.Approver)}, "next": {"//evil.example"}})
	if at := done.header.Get("Location"); at != "/" {
		t.Errorf("the login goes on at %q", at)
	}
	b.get("/?did=//evil.example").want(t, http.StatusOK)
	agent, err := client.New(client.Options{URL: h.URL, Token: h.Agent})
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	if _, err := agent.LoginLink(t.Context()); err == nil || !strings.Contains(err.Error(), "needs the role") {
		t.Errorf("an agent gets a link: %v", err)
	}
}

// TestHostileTexts: what agents write is text on every page, with each hidden character visible.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	b := loggedIn(t, h, h.Approver)
	for _, tt := range []struct{ name, text, shown string }{
		{"script", `<script>alert(1)</script>`, `&lt;script&gt;alert(1)&lt;/script&gt;`},
		{"end of the element", `</div></article><h1>Approved`, `&lt;/div&gt;&lt;/article&gt;&lt;h1&gt;Approved`},
		{"svg", `<svg onload=alert(1)>`, `&lt;svg onload=alert(1)&gt;`},
		{"style", `<style>*{display:none}</style>`, `&lt;style&gt;`},
		{"attribute", `" autofocus onfocus="alert(1)`, `autofocus onfocus=`},
		{"link", `javascript:alert(1)`, `javascript:alert(1)`},
		{"template", `{{.CSRF}}`, `{{.CSRF}}`},
		{"direction", "safe\u202etxt.exe", `safe\u202etxt.exe`},
		{"isolate", "a\u2066b\u2069", `a\u2066b\u2069`},
		{"zero width", "pass\u200bword", `pass\u200bword`},
		{"control", "a\u0007b", `a\`},
		{"tag characters", "a\U000e0041b", `a\U000e0041b`},
	} {
		for _, where := range []string{"argument", "context", "message"} {
			arguments := map[string]string{"text": "plain " + tt.name + where}
			call := client.Call{Tool: "write", Asks: true}
			switch where {
			case "argument":
				arguments["text"] = tt.text
			case "context":
				call.Context = tt.text
			}
			call.Arguments, _ = json.Marshal(arguments)
			id := askWith(t, h, call)
			page := b.get("/approvals/"+id).want(t, http.StatusOK).body
			form := b.form(page, "/approvals/"+id+"/reject")
			if where == "message" {
				form.Set("message", tt.text)
			}
			b.send("POST", "/approvals/"+id+"/reject", form).want(t, http.StatusSeeOther)
			after := b.get("/approvals/"+id).want(t, http.StatusOK).body
			for _, one := range []string{page, after, b.get("/?did=" + id).body} {
				for _, raw := range []string{"<script>alert", "<svg onload", "<style", "</div></article><h1>", "\u202e", "\u2066", "\u200b", "\a", "\U000e0041", `"javascript:`} {
					if strings.Contains(one, raw) {
						t.Errorf("%s as %s: the page has %q as it is", tt.name, where, raw)
					}
				}
			}
			if !strings.Contains(strings.ReplaceAll(after, "&#34;", `"`), tt.shown) {
				t.Errorf("%s as %s: the page does not show %q", tt.name, where, tt.shown)
			}
		}
	}
}

// TestLargeCall: a call of the largest size makes a page of a bounded size, which says what is missing.
func TestLargeCall(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	id := ask(t, h, strings.Repeat("<a&\u202e", 40_000))
	b := loggedIn(t, h, h.Approver)
	page := b.get("/approvals/"+id).want(t, http.StatusOK, "Not all of the call is shown").body
	if len(page) > 8<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
}
