package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestCall(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	var got outcome
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"look_it","arguments":{"text":"hi"}}`).into(t, http.StatusOK, &got)
	if got.Status != "success" || got.Result.Content != `look {"text":"hi"}` || !strings.HasPrefix(got.ToolCallID, "tc_") {
		t.Errorf("the call = %+v", got)
	}
	// That a call fails is no error of the interface.
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"look","arguments":{"text":{}}}`).into(t, http.StatusOK, &got)
	if got.Status != "error" || got.Error.Code != "INVALID_ARGUMENT" {
		t.Errorf("a call with wrong arguments = %+v", got)
	}
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"lok"}`).into(t, http.StatusOK, &got)
	if got.Error.Code != "NOT_FOUND" || !strings.Contains(got.Error.Hint, "look") {
		t.Errorf("a call of an unknown tool = %+v", got)
	}
}

func TestCallSaysWhatIsWrong(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	call := `{"tool":"look"}`
	for _, tt := range []struct {
		name, body string
		header     string
		status     int
		says       string
	}{
		{"no body", "", "", http.StatusBadRequest, "names no tool"},
		{"no tool", `{}`, "", http.StatusBadRequest, "names no tool"},
		{"no JSON", `{"tool":`, "", http.StatusBadRequest, "line 1, column 8"},
		{"a list", `[]`, "", http.StatusBadRequest, "expected a JSON object"},
		{"an unknown member", `{"tool":"look","approved":true}`, "", http.StatusBadRequest, `unknown member \"approved\"`},
		{"another case", `{"Tool":"look"}`, "", http.StatusBadRequest, `unknown member \"Tool\"`},
		{"a member twice", `{"tool":"look","tool":"wipe"}`, "", http.StatusBadRequest, "two members"},
		{"more after it", call + call, "", http.StatusBadRequest, "nothing more after the object"},
		{"a wrong type", `{"tool":7}`, "", http.StatusBadRequest, "tool is 7, expected a string"},
		{"null", `{"tool":null}`, "", http.StatusBadRequest, "tool is null, expected a string"},
		{"too deep", `{"tool":"look","arguments":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, "", http.StatusBadRequest, "nested 1001 deep"},
		{"no UTF-8", "{\"tool\":\"\xff\"}", "", http.StatusBadRequest, "not UTF-8"},
		{"too large", `{"tool":"` + strings.Repeat("x", 2<<20) + `"}`, "", http.StatusRequestEntityTooLarge, "2MiB"},
		{"another content", call, "Content-Type: text/plain", http.StatusUnsupportedMediaType, "application/json"},
		{"a wrong preference", call, "Prefer: wait=soon", http.StatusBadRequest, "wait=soon"},
		{"a session that hides", call, "Toolhost-Session: a\u202eb", http.StatusBadRequest, "Toolhost-Session"},
		{"a long client", call, "Toolhost-Client: " + strings.Repeat("x", 201), http.StatusBadRequest, "Toolhost-Client"},
		{"a long key", call, "Idempotency-Key: " + strings.Repeat("x", 201), http.StatusBadRequest, "Idempotency-Key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRequest(t, h.URL, h.Agent, "POST", "/v1/calls", tt.body)
			if name, value, ok := strings.Cut(tt.header, ": "); ok {
				r.Header.Set(name, value)
			}
			send(t, http.DefaultTransport, r).problem(t, tt.status, tt.says)
		})
	}
	ask(t, h, h.Agent, "POST", "/v1/calls?wait=3", call).problem(t, http.StatusBadRequest, "wait")
	r := newRequest(t, h.URL, h.Agent, "POST", "/v1/calls", call, "Toolhost-Client: "+strings.Repeat("x", 40<<10))
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 40 KiB = %d, want 431", response.StatusCode)
	}
}

// A call that asks for an answer at once continues without its client.
func TestCallAsync(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	var got outcome
	a := ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"slow"}`, "Prefer: respond-async")
	a.into(t, http.StatusAccepted, &got)
	path := "/v1/calls/" + got.ToolCallID
	if got.Status != "pending" || a.header.Get("Location") != path || a.header.Get("Preference-Applied") != "respond-async" {
		t.Errorf("the answer = %+v, %v", got, a.header)
	}
	if id := <-h.Started; id != got.ToolCallID {
		t.Errorf("call %s runs, want %s", id, got.ToolCallID)
	}
	var list []struct {
		ID    string `json:"tool_call_id"`
		State string
	}
	ask(t, h, h.Agent, "GET", "/v1/calls", "").into(t, http.StatusOK, &list)
	if len(list) != 1 || list[0].ID != got.ToolCallID || list[0].State != "running" {
		t.Errorf("calls under way = %+v", list)
	}
	ask(t, h, h.Agent, "GET", path, "").into(t, http.StatusAccepted, &got)

	// Nobody else's agent sees it, or can end it.
	ask(t, h, h.BobsAgent, "GET", "/v1/calls", "").into(t, http.StatusOK, &list)
	if len(list) != 0 {
		t.Errorf("a foreign agent sees %+v", list)
	}
	ask(t, h, h.BobsAgent, "GET", path, "").problem(t, http.StatusNotFound, got.ToolCallID)
	ask(t, h, h.BobsAgent, "POST", path+"/cancel", "").problem(t, http.StatusNotFound, got.ToolCallID)
	ask(t, h, h.Admin, "GET", path, "").into(t, http.StatusAccepted, &got)

	ask(t, h, h.Agent, "POST", path+"/cancel", "").into(t, http.StatusOK, &got)
	if got.Error.Code != "CANCELED" {
		t.Errorf("the canceled call = %+v", got)
	}
	ask(t, h, h.Agent, "POST", path+"/cancel", "").problem(t, http.StatusNotFound, "no running call")

	// Only the journal's record remains, for its own user.
	var recorded struct {
		Status string
		Record struct{ Code, User string }
	}
	ask(t, h, h.Agent, "GET", path, "").into(t, http.StatusOK, &recorded)
	if recorded.Status != "error" || recorded.Record.User != httpapitest.Ann {
		t.Errorf("the record = %+v", recorded)
	}
	ask(t, h, h.BobsAgent, "GET", path, "").problem(t, http.StatusNotFound, got.ToolCallID)
}

// An admin who reads a call leaves its result for its owner.
func TestAdminTakesNoResult(t *testing.T) {
	end := make(chan struct{})
	h := httpapitest.Start(t, httpapitest.Options{Run: until(end)})
	events := h.Events.Subscribe("")
	var got outcome
	ask(t, h, h.BobsAgent, "POST", "/v1/calls", `{"tool":"look"}`, "Prefer: respond-async").into(t, http.StatusAccepted, &got)
	path := "/v1/calls/" + got.ToolCallID
	ask(t, h, h.Admin, "GET", path+"?wait=1m", "").into(t, http.StatusAccepted, &got)
	close(end)
	for e, err := events.Next(t.Context()); e.Kind != event.KindToolResult; e, err = events.Next(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for { // the call has ended for those who watch a moment before it has for those who ask
		a := ask(t, h, h.Admin, "GET", path, "")
		if strings.Contains(string(a.body), "secret") {
			t.Errorf("the admin gets %s", a.body)
		}
		if a.status == http.StatusOK {
			break
		}
	}
	ask(t, h, h.BobsAgent, "GET", path, "").into(t, http.StatusOK, &got)
	if got.Result.Content != "secret" {
		t.Errorf("the caller gets %+v", got)
	}
}

// Abandoned calls are bounded, and take nothing from other clients.
func TestCallsThatAreLeft(t *testing.T) {
	end := make(chan struct{})
	h := httpapitest.Start(t, httpapitest.Options{Run: until(end)})
	status := 0
	for range 257 {
		status = ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"look"}`, "Prefer: respond-async").status
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("the 257th call = %d, want 429", status)
	}
	close(end)
	if got := ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"look"}`); got.status != http.StatusOK {
		t.Errorf("a call that waits = %d %s", got.status, got.body)
	}
	if got := ask(t, h, h.BobsAgent, "POST", "/v1/calls", `{"tool":"look"}`, "Prefer: respond-async"); got.status >= 400 {
		t.Errorf("a call of another user = %d %s", got.status, got.body)
	}
}

// until is a tool that answers "secret" when end is closed.
func until(end <-chan struct{}) func(context.Context, tool.Call, tool.Sink) (tool.Result, error) {
	return func(ctx context.Context, _ tool.Call, _ tool.Sink) (tool.Result, error) {
		select {
		case <-end:
		case <-ctx.Done():
		}
		return tool.TextResult("secret"), nil
	}
}

// If the client of a call disconnects, the call is canceled. The control is the call above,
// which its client left on purpose.
func TestCallEndsWithItsClient(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	events := h.Events.Subscribe("")
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-h.Started
		leave()
	}()
	r := newRequest(t, h.URL, h.Agent, "POST", "/v1/calls", `{"tool":"slow"}`).WithContext(ctx)
	if response, err := http.DefaultTransport.RoundTrip(r); err == nil {
		response.Body.Close()
		t.Fatal("the call was answered")
	}
	for {
		e, err := events.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if result, ok := e.Data.(event.ToolResult); ok {
			if result.Error == nil || result.Error.Code != "CANCELED" {
				t.Errorf("the call ended with %+v, want canceled", result)
			}
			return
		}
	}
}

func TestPreferWait(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	var got outcome
	a := ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"slow"}`, "Prefer: handling=lenient, wait=0")
	a.into(t, http.StatusAccepted, &got)
	if applied := a.header.Get("Preference-Applied"); applied != "wait=0" {
		t.Errorf("Preference-Applied = %q", applied)
	}
	a = ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"look"}`, `Prefer: wait="99999999"`)
	a.into(t, http.StatusOK, &got)
	if applied := a.header.Get("Preference-Applied"); applied != "wait=600" {
		t.Errorf("Preference-Applied = %q, want the most that is allowed", applied)
	}
}

// The host stops while clients wait: it tells them, and does not cancel the calls for that.
func TestStopTellsWhoWaits(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	answers := make(chan answer, 1)
	go func() { answers <- ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"wipe"}`) }()
	approvals := ask(t, h, h.Approver, "GET", "/v1/approvals?wait=1m", "")
	var open []struct{ ID string }
	approvals.into(t, http.StatusOK, &open)
	dir := h.StateDir
	h.Stop()
	got := <-answers
	got.problem(t, http.StatusServiceUnavailable, "stopping")

	again := httpapitest.StartIn(t, dir, httpapitest.Options{})
	var still []struct{ ID string }
	ask(t, again, again.Approver, "GET", "/v1/approvals?state=open", "").into(t, http.StatusOK, &still)
	if diff := cmp.Diff(open, still); diff != "" || len(open) != 1 {
		t.Errorf("open approvals before and after: %s", diff)
	}
}

func TestIdempotencyKey(t *testing.T) {
	runs := 0
	h := httpapitest.Start(t, httpapitest.Options{Run: func(context.Context, tool.Call, tool.Sink) (tool.Result, error) {
		runs++
		return tool.TextResult("done"), nil
	}})
	var first, second outcome
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"look"}`, "Idempotency-Key: k").into(t, http.StatusOK, &first)
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"look"}`, "Idempotency-Key: k").into(t, http.StatusOK, &second)
	if runs != 1 || second.Result.Content != "done" {
		t.Errorf("ran %d times, second answer %+v; want once", runs, second)
	}
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"look","arguments":{"text":"x"}}`, "Idempotency-Key: k").into(t, http.StatusOK, &second)
	if second.Error.Code != "CONFLICT" {
		t.Errorf("the key with another call = %+v, want a conflict", second)
	}
}

// The caller comes from the credential; the tool gets the client's own words as such.
func TestCaller(t *testing.T) {
	var got tool.Context
	h := httpapitest.Start(t, httpapitest.Options{Run: func(_ context.Context, call tool.Call, _ tool.Sink) (tool.Result, error) {
		got = call.Context
		return tool.Result{}, nil
	}})
	ask(t, h, h.BobsAgent, "POST", "/v1/calls", `{"tool":"look"}`, "Toolhost-Client: my agent", "Toolhost-Session: s1", "User: ann")
	if got.User != httpapitest.Bob || got.Client != "my agent" || got.Session != "s1" {
		t.Errorf("the tool sees %+v", got)
	}
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"look"}`)
	if got.User != httpapitest.Ann || got.Client != "agent" {
		t.Errorf("without names the tool sees %+v", got)
	}
	askControl(t, h, "", "POST", "/v1/calls", `{"tool":"look"}`)
	if got.User != httpapitest.Ann {
		t.Errorf("over the control socket the tool sees %+v", got)
	}
}

func TestExplain(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	var got map[string]any
	ask(t, h, h.Agent, "POST", "/v1/explain", `{"tool":"wipe_it","arguments":{"text":"x"}}`).into(t, http.StatusOK, &got)
	if got["verdict"] != "confirm" || got["tool"] != "wipe" || got["tier"] != "privileged" {
		t.Errorf("explain = %v", got)
	}
	ask(t, h, h.Agent, "POST", "/v1/explain", `{"tool":"wip"}`).problem(t, http.StatusNotFound, "wipe")
	ask(t, h, h.Agent, "POST", "/v1/explain", `{"tool":"wipe","arguments":{"x":1}}`).problem(t, http.StatusBadRequest, "")
	ask(t, h, h.Agent, "POST", "/v1/explain", `{"tool":"wipe","context":"x"}`).problem(t, http.StatusBadRequest, "context")
}

// TestExplainAnother checks that only those who may see a user's calls are told what a call of
// that user would meet, and that it is that user's call which is explained.
func TestExplainAnother(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	rules, err := policy.New(policy.Options{Rules: []policy.Rule{{
		Name: "bobs", Tools: []string{"wipe"}, Verdict: policy.Deny, Reason: "not Bob",
		When: func(in *policy.Input) (bool, error) {
			return in.Caller.User == httpapitest.Bob && slices.Equal(in.Caller.Roles, []string{"agent"}), nil
		},
	}, {
		Name: "codes", Tools: []string{"wipe"}, Verdict: policy.Deny, Reason: "not by code",
		When: func(in *policy.Input) (bool, error) { return in.Caller.Client == "code", nil },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	h.Pipeline.Apply(pipeline.Settings{Policy: rules})
	for _, tt := range []struct {
		name, secret, as string
		status           int
		says             string // the rule, or a part of the problem
	}{
		{"without a user", h.BobsAgent, ``, http.StatusOK, `rule "bobs"`},
		{"the own user", h.Agent, `,"user":"ann"`, http.StatusOK, "tier privileged"},
		{"an agent about another", h.Agent, `,"user":"bob"`, http.StatusForbidden, `may not see calls of the user \"bob\"`},
		{"an approver about a user of others", h.Approver, `,"user":"bob"`, http.StatusForbidden, `may not see calls of the user \"bob\"`},
		{"an approver of both", h.BothApprover, `,"user":"bob"`, http.StatusOK, `rule "bobs"`},
		{"an admin", h.Admin, `,"user":"bob"`, http.StatusOK, `rule "bobs"`},
		{"another client", h.Agent, `,"client":"code"`, http.StatusOK, `rule "codes"`},
		{"a user and a client", h.Admin, `,"user":"ann","client":"code"`, http.StatusOK, `rule "codes"`},
		{"a user who hides others", h.Admin, `,"user":"bob\u202e"`, http.StatusBadRequest, "expected user to be a name"},
		{"a client that hides others", h.Agent, `,"client":"a\nb"`, http.StatusBadRequest, "expected client to be a name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := ask(t, h, tt.secret, "POST", "/v1/explain", `{"tool":"wipe","arguments":{"text":"x"}`+tt.as+`}`)
			if tt.status != http.StatusOK {
				answer.problem(t, tt.status, tt.says)
				return
			}
			var got struct{ Rule string }
			answer.into(t, tt.status, &got)
			if got.Rule != tt.says {
				t.Errorf("explain is by %s, want %s", got.Rule, tt.says)
			}
		})
	}
}

func TestTools(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	schema := `{"additionalProperties":false,"properties":{"text":{"description":"any text","type":"string"}},"type":"object"}`
	for _, tt := range []struct{ path, want string }{
		{"/v1/tools?format=openai", `{"type":"function","function":{"name":"look","description":"Does look.","parameters":` + schema + `}}`},
		{"/v1/tools?format=anthropic", `{"name":"look","description":"Does look.","input_schema":` + schema + `}`},
		{"/v1/tools?format=gemini", `[{"functionDeclarations":[{"name":"look","description":"Does look.","parametersJsonSchema":` + schema + `}`},
		{"/v1/tools?format=mcp", `{"tools":[{"name":"look","title":"look","description":"Does look.","inputSchema":` + schema +
			`,"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}`},
		{"/v1/tools", `{"name":"look","plugin":"test","tier":"read_only"`},
		{"/v1/tools/wipe_it", `{"name":"wipe","plugin":"test","tier":"privileged"`},
		{"/v1/tools/wipe", `"arguments":[{"name":"text","type":"string","description":"any text"}],"approval":[{"tier":"privileged","verdict":"confirm","rule":"tier privileged"}]}`},
	} {
		a := ask(t, h, h.Agent, "GET", tt.path, "")
		if !json.Valid(a.body) || !strings.Contains(string(a.body), tt.want) {
			t.Errorf("GET %s = %s, want %s in it", tt.path, a.body, tt.want)
		}
	}
	ask(t, h, h.Agent, "GET", "/v1/tools?format=xml", "").problem(t, http.StatusBadRequest, "anthropic, gemini, mcp, openai")
	ask(t, h, h.Agent, "GET", "/v1/tools?fromat=mcp", "").problem(t, http.StatusBadRequest, "fromat")
	ask(t, h, h.Agent, "GET", "/v1/tools?format=mcp&format=mcp", "").problem(t, http.StatusBadRequest, "twice")
	ask(t, h, h.Agent, "GET", "/v1/tools/wip", "").problem(t, http.StatusNotFound, "wipe")
}

// A request for tools waits for plugins that start.
func TestToolsWaitForPlugins(t *testing.T) {
	ready := make(chan struct{})
	h := httpapitest.Start(t, httpapitest.Options{Ready: ready})
	answers := make(chan answer, 1)
	go func() { answers <- ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"late"}`) }()
	for range 50 { // then the call exists, or a host that does not wait has answered it
		ask(t, h, h.Agent, "GET", "/readyz", "")
	}
	select {
	case a := <-answers:
		t.Fatalf("answered before the plugins were known: %s", a.body)
	default:
	}
	spec := tool.Spec{Name: "late", Description: "Comes late.", Tier: tool.ReadOnly, InputSchema: json.RawMessage(`{"type":"object"}`)}
	if err := h.Catalog.Publish("test", "digest", []tool.Spec{spec}); err != nil {
		t.Fatal(err)
	}
	close(ready)
	var got outcome
	(<-answers).into(t, http.StatusOK, &got)
	if got.Status != "success" {
		t.Errorf("the call = %+v", got)
	}
}
