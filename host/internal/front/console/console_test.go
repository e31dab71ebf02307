package console_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/console"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
	"github.com/toolhost/toolhost/host/internal/state/weblogin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts a host with pages.
func start(t *testing.T, opts httpapitest.Options) *httpapitest.Host {
	t.Helper()
	opts.Pages = func(api *httpapi.Server, logins *weblogin.Logins) http.Handler {
		pages, err := console.New(console.Options{API: api, Logins: logins})
		if err != nil {
			t.Fatal(err)
		}
		return pages
	}
	return httpapitest.Start(t, opts)
}

// browser is a browser with cookies. It follows no redirect.
type browser struct {
	t    *testing.T
	h    *httpapitest.Host
	http *http.Client
}

func newBrowser(t *testing.T, h *httpapitest.Host) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	return &browser{t, h, &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// answer is what a browser gets.
type answer struct {
	status int
	header http.Header
	body   string
}

func (b *browser) send(method, path string, form url.Values, headers ...string) answer {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.h.URL+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	response, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

func (b *browser) get(path string, headers ...string) answer {
	b.t.Helper()
	return b.send("GET", path, nil, headers...)
}

// want checks the status of an answer and what its page says.
func (a answer) want(t *testing.T, status int, says ...string) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status = %d, want %d: %s", a.status, status, a.body)
	}
	for _, text := range says {
		if !strings.Contains(a.body, text) {
			t.Fatalf("the page lacks %q: %s", text, a.body)
		}
	}
	return a
}

// link asks for a link as a token.
func link(t *testing.T, h *httpapitest.Host, token string) (code string) {
	t.Helper()
	c, err := client.New(client.Options{URL: h.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := c.LoginLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(l.URL)
	if err != nil || !strings.HasPrefix(l.URL, h.URL+"/login?code=") {
		t.Fatalf("the link is %s, want one of %s", l.URL, h.URL)
	}
	return at.Query().Get("code")
}

// loggedIn returns a browser that is logged in as a token.
func loggedIn(t *testing.T, h *httpapitest.Host, token string) *browser {
	t.Helper()
	b := newBrowser(t, h)
	b.send("POST", "/login", url.Values{"code": {link(t, h, token)}}).want(t, http.StatusSeeOther)
	return b
}

// ask makes a call that waits for a person, as Ann's agent, and returns the id of its approval.
func ask(t *testing.T, h *httpapitest.Host, text string) (id string) {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	return askWith(t, h, client.Call{Tool: "write", Arguments: arguments, Asks: true})
}

func askWith(t *testing.T, h *httpapitest.Host, call client.Call) (id string) {
	t.Helper()
	c, err := client.New(client.Options{URL: h.URL, Token: h.Agent})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	outcome, err := c.Call(t.Context(), call)
	if err != nil || outcome.ApprovalID == "" {
		t.Fatalf("the call waits for no approval: %+v, %v", outcome, err)
	}
	return outcome.ApprovalID
}

var field = regexp.MustCompile(`name="([^"]+)" value="([^"]*)"`)

// form returns the hidden fields of the first form of a page with an action.
func (b *browser) form(page, action string) url.Values {
	b.t.Helper()
	_, rest, ok := strings.Cut(page, `action="`+action+`"`)
	if !ok {
		b.t.Fatalf("the page has no form for %s: %s", action, page)
	}
	rest, _, _ = strings.Cut(rest, "</form>")
	values := url.Values{}
	for _, f := range field.FindAllStringSubmatch(rest, -1) {
		values.Add(f[1], f[2])
	}
	return values
}

func (b *browser) record(id string) approval.Record {
	b.t.Helper()
	r, err := b.h.Approvals.Get(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func TestApprove(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	id := ask(t, h, "hello")
	b := loggedIn(t, h, h.Approver)
	page := b.get("/").want(t, http.StatusOK, "(1) Approvals", "Does write", "hello", "why: ask, by ", "/approvals/"+id+"/approve", "side_effecting").body
	form := b.form(page, "/approvals/"+id+"/approve")
	done := b.send("POST", "/approvals/"+id+"/approve", form).want(t, http.StatusSeeOther)
	if at := done.header.Get("Location"); at != "/?did="+id {
		t.Errorf("it goes on at %s", at)
	}
	if r := b.record(id); r.State != approval.Approved && r.State != approval.Spent || r.DecidedBy != httpapitest.Ann || r.Via != "console" {
		t.Errorf("the record is %s by %s over %s, want it approved by ann over console", r.State, r.DecidedBy, r.Via)
	}
	b.get("/?did="+id).want(t, http.StatusOK, "No call waits.", "over console")
	// A second decision changes nothing, and the card says who decided.
	b.send("POST", "/approvals/"+id+"/reject", form).want(t, http.StatusConflict, "This call is decided", "by <b>ann</b> over console")
}

func TestRejectWithMessage(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	id := ask(t, h, "hello")
	b := loggedIn(t, h, h.Approver)
	form := b.form(b.get("/").body, "/approvals/"+id+"/reject")
	form.Set("message", "not <b>this</b> one")
	b.send("POST", "/approvals/"+id+"/reject", form).want(t, http.StatusSeeOther)
	if r := b.record(id); r.State != approval.Rejected || r.Message != "not <b>this</b> one" {
		t.Errorf("the record is %s with %q", r.State, r.Message)
	}
	b.get("/approvals/"+id).want(t, http.StatusOK, "not &lt;b&gt;this&lt;/b&gt; one")
}

// TestDecisionIsBound: a form with other hashes than those of the call decides nothing.
func TestDecisionIsBound(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	first, second := ask(t, h, "one"), ask(t, h, "two")
	b := loggedIn(t, h, h.Approver)
	form := b.form(b.get("/approvals/"+first).body, "/approvals/"+first+"/approve")
	b.send("POST", "/approvals/"+second+"/approve", form).want(t, http.StatusConflict, "differs from what was shown")
	form.Del("arguments_hash")
	b.send("POST", "/approvals/"+first+"/approve", form).want(t, http.StatusBadRequest, "lacks its arguments_hash")
	for _, id := range []string{first, second} {
		if r := b.record(id); r.State != approval.Open {
			t.Errorf("%s is %s, want open", id, r.State)
		}
	}
}

func TestScope(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	id := ask(t, h, "hello")
	b := loggedIn(t, h, h.Approver)
	b.get("/approvals/"+id+"?covers=tool&ends=1h&uses=3").want(t, http.StatusOK, "needs the role admin", `value="3"`)
	form := b.form(b.get("/").body, "/approvals/"+id+"/approve")
	for name, value := range map[string]string{"covers": "tool", "ends": "1h", "uses": "0"} {
		form.Set(name, value)
	}
	b.send("POST", "/approvals/"+id+"/approve", form).want(t, http.StatusBadRequest, "The number of uses is not a number")
	form.Set("uses", "3")
	b.send("POST", "/approvals/"+id+"/approve", form).want(t, http.StatusSeeOther)
	c, err := client.New(client.Options{URL: h.URL, Token: h.Approver})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	grants, err := c.Grants(t.Context(), false)
	if err != nil || len(grants) != 1 || grants[0].MaxUses != 3 || grants[0].Tool != "write" || grants[0].Expires.Sub(grants[0].Created).Hours() != 1 {
		t.Fatalf("grants = %+v, %v, want one of write for an hour and 3 uses", grants, err)
	}
}

// TestBatch: each call of a batch gets its own decision; one that was decided meanwhile is told.
func TestBatch(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	var ids []string
	for i := range 3 {
		ids = append(ids, ask(t, h, fmt.Sprintf("call %d", i)))
	}
	b := loggedIn(t, h, h.Approver)
	page := b.get("/batch?id="+strings.Join(ids, "&id=")).want(t, http.StatusOK, "call 0", "call 1", "call 2", "Approve 3 once").body
	form := b.form(page, "/batch")
	one := b.form(b.get("/approvals/"+ids[1]).body, "/approvals/"+ids[1]+"/reject")
	b.send("POST", "/approvals/"+ids[1]+"/reject", one).want(t, http.StatusSeeOther)
	form.Set("decision", "approve")
	b.send("POST", "/batch", form).want(t, http.StatusOK, "not decided", "was rejected by ann over console")
	for i, want := range []bool{true, false, true} {
		if r := b.record(ids[i]); (r.State == approval.Approved || r.State == approval.Spent) != want {
			t.Errorf("call %d is %s, want approved: %v", i, r.State, want)
		}
	}
	b.get("/batch").want(t, http.StatusBadRequest, "No calls are selected")
}

// TestOthersCalls: a page shows no more than REST does to the same caller.
func TestOthersCalls(t *testing.T) {
	t.Parallel()
	h := start(t, httpapitest.Options{})
	c, err := client.New(client.Options{URL: h.URL, Token: h.BobsAgent})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Call(t.Context(), client.Call{Tool: "write", Arguments: json.RawMessage(`{"text":"of bob"}`), Asks: true}); err != nil {
		t.Fatal(err)
	}
	all, err := h.Approvals.List(t.Context(), approval.Filter{By: auth.Caller{User: "root", Roles: auth.Admin}})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d approvals, %v", len(all), err)
	}
	id := all[0].ID
	b := loggedIn(t, h, h.Approver)
	b.get("/").want(t, http.StatusOK, "No call waits.")
	b.get("/approvals/"+id).want(t, http.StatusNotFound)
	// An admin sees it and cannot decide.
	admin := loggedIn(t, h, h.Admin)
	page := admin.get("/").want(t, http.StatusOK, "of bob", "others decide", "You may not decide about calls of bob", "both-approver").body
	if strings.Contains(page, "/approve\"") || strings.Contains(page, "(1)") {
		t.Error("the page of an admin has a form to decide, or counts the call")
	}
	form := admin.form(page, "/logout")
	form.Set("arguments_hash", all[0].ArgumentsHash)
	admin.send("POST", "/approvals/"+id+"/approve", form).want(t, http.StatusForbidden)
	if r := admin.record(id); r.State != approval.Open {
		t.Errorf("the call is %s, want open", r.State)
	}
}
