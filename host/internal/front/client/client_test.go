package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func newClient(t *testing.T, opts client.Options) *client.Client {
	t.Helper()
	c, err := client.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// as returns clients of an agent, over the control socket, and of a person with
// the approver's key.
func as(t *testing.T, h *httpapitest.Host) (agent, person *client.Client) {
	t.Helper()
	return newClient(t, client.Options{StateDir: h.StateDir, Name: "tester", Session: "s1"}),
		newClient(t, client.Options{StateDir: h.StateDir, Token: h.Key})
}

func TestCall(t *testing.T) {
	image := tool.Content{Kind: tool.KindImage, MediaType: "image/png", Data: []byte{1, 2, 3}}
	h := httpapitest.Start(t, httpapitest.Options{Run: func(_ context.Context, call tool.Call, _ tool.Sink) (tool.Result, error) {
		if call.Tool == "slow" {
			return tool.ErrorResult(tool.Errorf(tool.Failed, "no").WithHint("try another").WithRetry(2 * time.Second)), nil
		}
		return tool.Result{
			Content: []tool.Content{tool.Text(call.Context.Client + call.Context.Session), image},
			Effects: []tool.Effect{{Kind: "file.changed", Target: "a", Operation: "create"}}, Metadata: map[string]any{"n": 1.0},
		}, nil
	}})
	agent, _ := as(t, h)
	got, err := agent.Call(t.Context(), client.Call{Tool: "look", Arguments: json.RawMessage(`{"text":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != client.Success || got.Result.Content != "testers1" || len(got.Result.Parts) != 1 || len(got.Result.Effects) != 1 ||
		string(got.Result.Parts[0].Data) != string(image.Data) || got.Result.Parts[0].Kind != tool.KindImage || got.Result.Metadata["n"] != 1.0 {
		t.Errorf("Call = %+v", got)
	}
	raw, err := json.Marshal(got)
	if err != nil || !strings.Contains(string(raw), `"execution_time_ms"`) {
		t.Errorf("the outcome as JSON = %s, %v; want what the host sent", raw, err)
	}
	got, err = agent.Call(t.Context(), client.Call{Tool: "slow"})
	if err != nil || got.Status != client.Error || got.Error.Code != "FAILED" || got.Error.Hint != "try another" || got.Error.RetryAfterMS != 2000 {
		t.Errorf("a call that fails = %+v %+v, %v", got, got.Error, err)
	}
}

func TestCallsUnderWay(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	agent, _ := as(t, h)
	got, err := agent.Call(t.Context(), client.Call{Tool: "slow", Wait: -1})
	if err != nil || got.Status != client.Pending {
		t.Fatalf("Call = %+v, %v; want pending", got, err)
	}
	id := got.ToolCallID
	if got, err = agent.Outcome(t.Context(), id, time.Millisecond); err != nil || got.Status != client.Pending {
		t.Errorf("Outcome = %+v, %v; want pending", got, err)
	}
	if got, err = agent.Cancel(t.Context(), id); err != nil || got.Error.Code != "CANCELED" {
		t.Errorf("Cancel = %+v, %v", got, err)
	}
	if got, err = agent.Outcome(t.Context(), id, 0); err != nil || got.Status != client.Error {
		t.Errorf("Outcome of what has ended = %+v, %v", got, err)
	}
	if got, err = agent.Call(t.Context(), client.Call{Tool: "slow", Wait: time.Millisecond}); err != nil || got.Status != client.Pending {
		t.Errorf("Call with a wait = %+v, %v; want pending", got, err)
	}
}

// A person finds the question, sees it and answers it.
func TestApprovals(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{Patience: time.Millisecond})
	agent, person := as(t, h)
	pending, err := agent.Call(t.Context(), client.Call{Tool: "write", Context: "because", IdempotencyKey: "k"})
	if err != nil || pending.ApprovalID == "" {
		t.Fatalf("Call = %+v, %v", pending, err)
	}
	open, err := person.Approvals(t.Context(), client.ApprovalFilter{
		States: []approval.State{approval.Open}, Users: []string{httpapitest.Ann}, Limit: 5, Wait: time.Minute,
	})
	if err != nil || len(open) != 1 || open[0].ID != pending.ApprovalID || open[0].Verdict != policy.Ask {
		t.Fatalf("Approvals = %+v, %v", open, err)
	}
	whole, err := person.Approval(t.Context(), open[0].ID)
	if err != nil || whole.Display == nil || !whole.Display.Complete || whole.Context != "because" {
		t.Errorf("Approval = %+v, %v", whole, err)
	}
	if _, err := person.Approve(t.Context(), open[0].ID, client.Answer{ArgumentsHash: "sha256:0"}); status(err) != http.StatusConflict {
		t.Errorf("Approve of other arguments: %v, want a conflict", err)
	}
	record, err := person.Approve(t.Context(), open[0].ID, client.Answer{Grant: &client.Terms{For: "8h"}, Message: "ok"}.Seen(whole.Record))
	if err != nil || record.Via != "cli" {
		t.Errorf("Approve = %+v, %v", record, err)
	}
	if got, err := agent.Outcome(t.Context(), pending.ToolCallID, time.Minute); err != nil || got.Status != client.Success {
		t.Errorf("the call = %+v, %v", got, err)
	}
	grants, err := person.Grants(t.Context(), false)
	if err != nil || len(grants) != 1 {
		t.Fatalf("Grants = %+v, %v", grants, err)
	}
	if grant, err := person.Revoke(t.Context(), grants[0].ID); err != nil || grant.Revoked.IsZero() {
		t.Errorf("Revoke = %+v, %v", grant, err)
	}
	if grants, err = person.Grants(t.Context(), true); err != nil || len(grants) != 1 {
		t.Errorf("Grants with revoked ones = %+v, %v", grants, err)
	}

	pending, err = agent.Call(t.Context(), client.Call{Tool: "wipe"})
	if err != nil {
		t.Fatal(err)
	}
	if whole, err = person.Approval(t.Context(), pending.ApprovalID); err != nil {
		t.Fatal(err)
	}
	if _, err := person.Reject(t.Context(), pending.ApprovalID, client.Answer{Message: "wrong"}); status(err) != http.StatusBadRequest {
		t.Errorf("Reject of what was not seen: %v, want a bad request", err)
	}
	if _, err := person.Reject(t.Context(), pending.ApprovalID, client.Answer{Message: "wrong"}.Seen(whole.Record)); err != nil {
		t.Error(err)
	}
	got, err := agent.Outcome(t.Context(), pending.ToolCallID, time.Minute)
	if err != nil || got.Status != client.Rejected || got.UserMessage != "wrong" {
		t.Errorf("the rejected call = %+v, %v", got, err)
	}
}

func TestToolsAndExplain(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	agent, _ := as(t, h)
	tools, err := agent.Tools(t.Context())
	if err != nil || len(tools) != 4 || tools[0].Tier != tool.ReadOnly {
		t.Errorf("Tools = %+v, %v", tools, err)
	}
	if one, err := agent.Tool(t.Context(), "wipe_it"); err != nil || one.Name != "wipe" {
		t.Errorf("Tool = %+v, %v", one, err)
	}
	_, err = agent.Tool(t.Context(), "wip/../look")
	p, ok := errors.AsType[*httpapi.Problem](err)
	if !ok || p.Status != http.StatusNotFound || p.Detail == "" {
		t.Errorf("Tool of an unknown name: %v, want a problem", err)
	}
	e, err := agent.Explain(t.Context(), client.Call{Tool: "wipe"})
	if err != nil || e.Verdict != policy.Confirm || e.Tier != tool.Privileged {
		t.Errorf("Explain = %+v, %v", e, err)
	}
	var refused *httpapi.Problem
	if _, err := agent.ExplainAs(t.Context(), client.Call{Tool: "wipe"}, httpapitest.Bob, "code"); !errors.As(err, &refused) || refused.Status != http.StatusForbidden {
		t.Errorf("ExplainAs = %v, want it refused to an agent", err)
	}
}

func TestAdmin(t *testing.T) {
	reloads := 0
	h := httpapitest.Start(t, httpapitest.Options{Ready: make(chan struct{}), Reload: func(context.Context, string, auth.Caller, string) error {
		reloads++
		return nil
	}})
	agent, person := as(t, h)
	plugins, err := person.Plugins(t.Context())
	if err != nil || len(plugins) != 1 || plugins[0].Phase == 0 {
		t.Errorf("Plugins = %+v, %v", plugins, err)
	}
	if _, err := person.RestartPlugin(t.Context(), "missing"); status(err) != http.StatusUnprocessableEntity {
		t.Errorf("RestartPlugin: %v", err)
	}
	if err := person.Reload(t.Context(), ""); err != nil || reloads != 1 {
		t.Errorf("Reload: %v, %d reloads", err, reloads)
	}
	if err := agent.Reload(t.Context(), ""); status(err) != http.StatusForbidden || reloads != 1 {
		t.Errorf("Reload by an agent: %v, %d reloads", err, reloads)
	}
	if health, err := agent.Health(t.Context()); err != nil || health.Status != "ok" {
		t.Errorf("Health = %+v, %v", health, err)
	}
	if ready, err := agent.Readiness(t.Context()); err != nil || ready.Status != "starting" {
		t.Errorf("Readiness = %+v, %v", ready, err)
	}
	if report, err := person.VerifyJournal(t.Context()); err != nil || len(report.Problems) != 0 {
		t.Errorf("VerifyJournal = %+v, %v", report, err)
	}
}

func TestJournal(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{Configure: nil})
	agent, person := as(t, h)
	for range 3 {
		if _, err := agent.Call(t.Context(), client.Call{Tool: "look"}); err != nil {
			t.Fatal(err)
		}
	}
	var calls []string
	for row, err := range person.TailJournal(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if calls = append(calls, row.Call); len(calls) == 3 {
			break
		}
	}
	rows, err := person.Journal(t.Context(), journal.Query{
		Tool: "look", User: httpapitest.Ann, Session: "s1", Status: "success", Since: time.Unix(0, 0), Until: time.Now().Add(time.Hour),
		After: 1, Before: 3, Limit: 10, OldestFirst: true,
	})
	if err != nil || len(rows) != 1 || rows[0].Call != calls[1] {
		t.Errorf("Journal = %+v, %v; want the second call", rows, err)
	}
	for _, err := range agent.TailJournal(t.Context(), -1) {
		if status(err) != http.StatusForbidden {
			t.Errorf("TailJournal by an agent: %v", err)
		}
	}
}

func TestEvents(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	agent, _ := as(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.Events.Publish(httpapitest.Ann, event.AgentState{Session: "s", State: event.Idle})
	first := h.Events.Subscribe("").Position()
	h.Events.Publish(httpapitest.Ann, event.AgentState{Session: "s", State: event.ToolExecution})
	h.Events.Publish("", event.CatalogChanged{Tools: 1})
	var kinds []event.Kind
	for e, err := range agent.Events(ctx, first, event.KindCatalogChanged) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != "" {
			kinds = append(kinds, e.Kind)
			cancel()
		}
	}
	if len(kinds) != 1 || kinds[0] != event.KindCatalogChanged {
		t.Errorf("events = %v, want that the tools have changed", kinds)
	}
}

func TestNoHost(t *testing.T) {
	dir := t.TempDir()
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	for _, c := range []*client.Client{
		newClient(t, client.Options{StateDir: dir}),
		newClient(t, client.Options{URL: dead.URL}),
	} {
		if _, err := c.Tools(t.Context()); !errors.Is(err, client.ErrNoHost) {
			t.Errorf("Tools without a host: %v, want ErrNoHost", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newClient(t, client.Options{URL: dead.URL}).Tools(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Tools with an ended context: %v", err)
	}
}

// A state directory whose path is too long for a socket works all the same.
func TestLongStateDir(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a way round")
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 150))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h := httpapitest.StartIn(t, dir, httpapitest.Options{})
	agent, _ := as(t, h)
	if _, err := agent.Tools(t.Context()); err != nil {
		t.Error(err)
	}
}

// Another program than toolhost may answer; the client must not trust it with anything.
func TestStrangers(t *testing.T) {
	secret := "th_secret"
	var stolen string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen = r.Header.Get("Authorization") }))
	defer thief.Close()
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		says   string
	}{
		{"a web page", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) }, "502"},
		{"an empty problem", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(`{}`))
		}, "418"},
		{"another JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"a":1}`)) }, "cannot be decoded"},
		{"nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }, "cannot be decoded"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, http.StatusFound) }, "302"},
		{"a hang-up", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
		}, "the connection to the host broke"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stranger := httptest.NewServer(tt.answer)
			defer stranger.Close()
			c := newClient(t, client.Options{URL: stranger.URL, Token: secret})
			if _, err := c.Tools(t.Context()); err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), secret) {
				t.Errorf("Tools = %v, want an error with %q", err, tt.says)
			}
		})
	}
	if stolen != "" {
		t.Errorf("the token went elsewhere: %s", stolen)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, opts := range []client.Options{
		{}, {StateDir: "/x", URL: "http://x"}, {URL: "127.0.0.1:7780"}, {URL: "unix:///x"}, {URL: "http://"}, {URL: "://"},
	} {
		if _, err := client.New(opts); err == nil {
			t.Errorf("New(%+v): no error", opts)
		}
	}
}

// status returns the status of a problem; 0 if err has none.
func status(err error) int {
	if p, ok := errors.AsType[*httpapi.Problem](err); ok {
		return p.Status
	}
	return 0
}
