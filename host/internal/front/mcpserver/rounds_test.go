package mcpserver_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	stateless   = "2026-07-28"
	withSession = "2025-11-25"
)

// begin starts a host whose clients have no patience.
func begin(t *testing.T, run func(context.Context, tool.Call, tool.Sink) (tool.Result, error)) *httpapitest.Host {
	t.Helper()
	return httpapitest.Start(t, httpapitest.Options{MCP: true, Patience: time.Millisecond, Run: run})
}

// bearer sends a token with every request.
type bearer string

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// client is a client of a host. Everything that it waits for is bounded.
type client struct {
	*mcp.ClientSession

	ctx context.Context //nolint:containedctx // of all its requests
}

// connect connects a client of user Ann, under the name of a token that the client does not
// have.
func connect(t *testing.T, h *httpapitest.Host, revision string, opts *mcp.ClientOptions) *client {
	t.Helper()
	return connectWith(t, h, h.Agent, revision, "asker", opts)
}

// connectAsker connects a client of user Ann that may ask her for approvals.
func connectAsker(t *testing.T, h *httpapitest.Host, revision string, opts *mcp.ClientOptions) *client {
	t.Helper()
	return connectWith(t, h, h.Asker, revision, "test", opts)
}

func connectWith(t *testing.T, h *httpapitest.Host, secret, revision, name string, opts *mcp.ClientOptions) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	session, err := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, opts).Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: h.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(secret)},
	}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatalf("connect with revision %s: %v", revision, err)
	}
	t.Cleanup(func() { _ = session.Close() }) // the host may have ended
	return &client{session, ctx}
}

// byHand returns a client that can show forms. In a revision without sessions, only the test
// sends its answers.
func byHand(answer *mcp.ElicitResult) *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return answer, nil },
		MultiRoundTrip:     &mcp.MultiRoundTripOptions{Disabled: true},
	}
}

func approve() *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}
}

// write calls the tool that needs approval, or continues the call after one of its rounds.
func (c *client) write(t *testing.T, text string, after *mcp.CallToolResult, answer *mcp.ElicitResult) *mcp.CallToolResult {
	t.Helper()
	p := &mcp.CallToolParams{Name: "write", Arguments: map[string]any{"text": text}}
	if after != nil {
		p.RequestState = after.RequestState
	}
	if answer != nil {
		p.InputResponses = mcp.InputResponseMap{"approval": answer}
	}
	r, err := c.CallTool(c.ctx, p)
	if err != nil {
		t.Fatalf("write: %v", err)
	}
	return r
}

// codeOf returns the code of the error in a result, or "".
func codeOf(r *mcp.CallToolResult) string {
	failure, _ := r.Meta["toolhost/error"].(map[string]any)
	code, _ := failure["code"].(string)
	return code
}

// records returns the approvals of a host.
func records(t *testing.T, h *httpapitest.Host) []approval.Record {
	t.Helper()
	all, err := h.Approvals.List(t.Context(), approval.Filter{By: auth.Caller{User: "root", Roles: auth.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRoundsAreBounded repeats a call without an answer: the host asks a few times, then
// leaves the decision to others.
func TestRoundsAreBounded(t *testing.T) {
	h := begin(t, nil)
	c := connectAsker(t, h, stateless, byHand(nil))
	r := c.write(t, "a", nil, nil)
	asked := 0
	for ; r.NeedsInput() && asked < 20; asked++ {
		r = c.write(t, "a", r, nil)
	}
	if asked != 5 || codeOf(r) != "pending_approval" {
		t.Errorf("the client was asked %d times, and the call came to %+v; want 5 times, then that it is pending", asked, r)
	}
	if got := records(t, h); len(got) != 1 || got[0].State != approval.Open {
		t.Errorf("the approvals are %+v, want one that is open", got)
	}
}

// TestAnswersOfTheUntrusted takes elicitation away from a token while the form is open: the
// answer does not count. The control is the same answer after the token has it again.
func TestAnswersOfTheUntrusted(t *testing.T) {
	h := begin(t, nil)
	c := connectAsker(t, h, stateless, byHand(nil))
	trust := func(elicitation bool) {
		list := slices.Clone(h.TokenList)
		for i := range list {
			list[i].Elicitation = elicitation && list[i].Name == "asker"
		}
		if err := h.Tokens.Replace(list); err != nil {
			t.Fatal(err)
		}
	}
	r := c.write(t, "a", nil, nil)
	if !r.NeedsInput() {
		t.Fatalf("the call came to %+v, want that it needs input", r)
	}
	trust(false)
	if got := c.write(t, "a", r, approve()); got.NeedsInput() || codeOf(got) != "pending_approval" {
		t.Errorf("the answer of an untrusted client came to %+v, want that the call is pending", got)
	}
	if got := records(t, h); len(got) != 1 || got[0].State != approval.Open {
		t.Errorf("after that the approvals are %+v, want one that is open", got)
	}
	trust(true)
	if got := c.write(t, "a", r, approve()); got.NeedsInput() || codeOf(got) != "" {
		t.Errorf("control: the answer of the trusted client came to %+v, want the result", got)
	}
}

// TestClientsWithoutForms checks that clients are asked only if they declare that they show
// forms, trusted or not. The control declares it.
func TestClientsWithoutForms(t *testing.T) {
	url := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}}
	for _, tt := range []struct {
		name  string
		shows bool
		opts  *mcp.ClientOptions
	}{
		{"nothing", false, &mcp.ClientOptions{}},
		{"pages only", false, &mcp.ClientOptions{Capabilities: url}},
		{"control: forms", true, byHand(nil)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
			r := connectAsker(t, begin(t, nil), stateless, tt.opts).write(t, "a", nil, nil)
			if r.NeedsInput() != tt.shows || (codeOf(r) == "pending_approval") == tt.shows {
				t.Errorf("the call came to %+v, want that the client is asked: %t", r, tt.shows)
			}
		})
	}
}

// TestElicitationNeedsAToken checks that a client with the token that all programs of an
// account share cannot show forms, even under a trusted client's name.
func TestElicitationNeedsAToken(t *testing.T) {
	for _, revision := range []string{stateless, withSession} {
		h := begin(t, nil)
		opts := byHand(approve())
		opts.MultiRoundTrip = nil
		if r := connect(t, h, revision, opts).write(t, "a", nil, nil); codeOf(r) != "pending_approval" {
			t.Errorf("%s: the call came to %+v, want that it is pending", revision, r)
		}
		if got := records(t, h); len(got) != 1 || got[0].State != approval.Open {
			t.Errorf("%s: the approvals are %+v, want one that is open", revision, got)
		}
	}
}

// TestElicitationIsRecorded approves and rejects through the client and checks that the record
// names that channel.
func TestElicitationIsRecorded(t *testing.T) {
	type decision struct {
		state   approval.State
		by, via string
	}
	reject := &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "reject"}}
	for _, revision := range []string{stateless, withSession} {
		h := begin(t, nil)
		for _, answer := range []*mcp.ElicitResult{approve(), reject} {
			opts := byHand(answer)
			opts.MultiRoundTrip = nil
			connectAsker(t, h, revision, opts).write(t, "a", nil, nil)
		}
		var got []decision
		for _, r := range records(t, h) {
			got = append(got, decision{r.State, r.DecidedBy, r.Via})
		}
		want := []decision{{approval.Rejected, httpapitest.Ann, "elicitation"}, {approval.Spent, httpapitest.Ann, "elicitation"}}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(decision{})); diff != "" {
			t.Errorf("%s: the records say (-want +got):\n%s", revision, diff)
		}
	}
}

// TestListsArePrivate checks that no shared cache may keep a list of tools.
func TestListsArePrivate(t *testing.T) {
	list, err := connect(t, begin(t, nil), stateless, nil).ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) == 0 || list.CacheScope != "private" {
		t.Errorf("tools/list = %+v, %v; want tools, for a private cache", list, err)
	}
}

// TestTraceparent checks that the tool receives the request's trace if it is valid.
func TestTraceparent(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var got string
	h := begin(t, func(_ context.Context, call tool.Call, _ tool.Sink) (tool.Result, error) {
		got = call.Context.Traceparent
		return tool.Result{}, nil
	})
	c := connect(t, h, stateless, nil)
	for _, tt := range []struct {
		name  string
		given any
		want  string
	}{
		{"one", good, good},
		{"none", nil, ""},
		{"nothing", "", ""},
		{"a number", 1, ""},
		{"capitals", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", ""},
		{"one that is too short", good[1:], ""},
		{"more lines", good + "\nx: y", ""},
		{"words before it", "x " + good, ""},
	} {
		p := &mcp.CallToolParams{Name: "look", Arguments: map[string]any{}}
		if tt.given != nil {
			p.Meta = mcp.Meta{"traceparent": tt.given}
		}
		got = "the tool did not run"
		if r, err := c.CallTool(c.ctx, p); err != nil || r.IsError || got != tt.want {
			t.Errorf("%s: the tool gets %q, want %q; the call came to %+v, %v", tt.name, got, tt.want, r, err)
		}
	}
}
