package mcpserver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// gate is a tool that runs until the test opens it, and counts its calls.
type gate struct {
	inside chan context.Context // contexts of the calls
	open   chan struct{}
	calls  atomic.Int32
}

func newGate() *gate { return &gate{inside: make(chan context.Context, 10), open: make(chan struct{})} }

func (g *gate) run(ctx context.Context, _ tool.Call, _ tool.Sink) (tool.Result, error) {
	g.calls.Add(1)
	g.inside <- ctx
	select {
	case <-g.open:
		return tool.TextResult("done"), nil
	case <-ctx.Done():
		return tool.Result{}, context.Cause(ctx)
	}
}

// lastID is the ID of the last message of [post].
var lastID atomic.Int32

// post sends one message until ctx ends and returns the answer. An empty session means the
// revision without sessions.
func post(ctx context.Context, h *httpapitest.Host, session, method, params string) (answer *http.Response, text string, err error) {
	header := map[string]string{
		"Authorization": "Bearer " + h.Agent, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
	}
	switch {
	case session != "":
		header["Mcp-Session-Id"], header["Mcp-Protocol-Version"] = session, withSession
	case method == "tools/call":
		header["Mcp-Protocol-Version"], header["Mcp-Method"], header["Mcp-Name"] = stateless, method, "look"
		params += `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":` +
			`{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	id := ""
	if !strings.HasPrefix(method, "notifications/") {
		id = fmt.Sprintf(`"id":%d,`, lastID.Add(1))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+"/mcp", strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":{%s}}`, id, method, params)))
	if err != nil {
		return nil, "", err
	}
	for key, value := range header {
		r.Header.Set(key, value)
	}
	if answer, err = http.DefaultClient.Do(r); err != nil {
		return nil, "", err
	}
	defer func() { _ = answer.Body.Close() }() // opened for reading only
	body, err := io.ReadAll(answer.Body)
	return answer, string(body), err
}

// callOf returns the parameters of a call.
func callOf(name string) string { return fmt.Sprintf(`"name":%q,"arguments":{"text":"a"}`, name) }

// becomes waits until the only call under way satisfies so.
func becomes(t *testing.T, h *httpapitest.Host, so func(operation.Info) bool) operation.Info {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		list := h.Pipeline.Operations().List(auth.Caller{User: httpapitest.Ann})
		if len(list) == 1 && so(list[0]) {
			return list[0]
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("the calls under way are %+v", list)
		}
	}
}

func decide(t *testing.T, h *httpapitest.Host, id string) {
	t.Helper()
	record, err := h.Approvals.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Approvals.Decide(t.Context(), approval.Decision{
		ID: id, ArgumentsHash: record.ArgumentsHash, PreviewDigest: record.PreviewDigest, Approve: true, By: auth.Caller{User: httpapitest.Ann, Roles: auth.Approver}, Via: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDroppedRequest drops the request of a call in a session: while it runs, while it waits
// for a person and after its approval. The call continues, the same call gets the result of
// the first, and the tool runs once.
func TestDroppedRequest(t *testing.T) {
	waits := func(o operation.Info) bool { return o.State == operation.AwaitingApproval }
	for _, tt := range []struct {
		name, tool string
		approve    string // when to approve; "" means that the call needs no approval
	}{{"running", "look", ""}, {"waiting for a person", "write", "after"}, {"approved", "write", "before"}} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate()
			h := httpapitest.Start(t, httpapitest.Options{MCP: true, Run: g.run})
			session := newSession(t, h)
			ctx, drop := context.WithCancel(t.Context())
			defer drop()
			dropped := make(chan error, 1)
			go func() { // ends with drop
				_, _, err := post(ctx, h, session, "tools/call", callOf(tt.tool))
				dropped <- err
			}()
			if tt.approve == "before" {
				decide(t, h, becomes(t, h, waits).Approval)
			}
			if tt.approve != "after" {
				<-g.inside
			} else {
				becomes(t, h, waits)
			}
			drop()
			if err := <-dropped; err == nil {
				t.Fatal("the request had an answer before it was dropped")
			}
			becomes(t, h, func(o operation.Info) bool { return o.Left })
			if tt.approve == "after" {
				decide(t, h, becomes(t, h, waits).Approval)
				<-g.inside
			}
			close(g.open)
			_, got, err := post(t.Context(), h, session, "tools/call", callOf(tt.tool))
			if err != nil || !strings.Contains(got, `"text":"done"`) || g.calls.Load() != 1 {
				t.Errorf("the same call made again: %s, %v, and the tool ran %d times; want the result of one run", got, err, g.calls.Load())
			}
		})
	}
}

// TestDroppedRequestWithoutSession checks that dropping a request cancels its call in the
// revision without sessions.
func TestDroppedRequestWithoutSession(t *testing.T) {
	g := newGate()
	h := httpapitest.Start(t, httpapitest.Options{MCP: true, Run: g.run})
	ctx, drop := context.WithCancel(t.Context())
	dropped := make(chan error, 1)
	go func() { // ends with drop
		_, _, err := post(ctx, h, "", "tools/call", callOf("look"))
		dropped <- err
	}()
	inside := <-g.inside
	drop()
	<-dropped
	<-inside.Done()
}

// TestCanceledCallEnds checks that an explicit cancellation ends a call.
func TestCanceledCallEnds(t *testing.T) {
	g := newGate()
	h := httpapitest.Start(t, httpapitest.Options{MCP: true, Run: g.run})
	c := connect(t, h, withSession, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with cancel
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "look"})
		ended <- err
	}()
	inside := <-g.inside
	cancel()
	<-ended
	<-inside.Done()
}

// end ends a session.
func end(t *testing.T, h *httpapitest.Host, session string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, h.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.Agent)
	r.Header.Set("Mcp-Session-Id", session)
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusNoContent {
		t.Fatalf("DELETE of the session = %v, %v", answer, err)
	}
	_ = answer.Body.Close() // has no content
}

// TestEndOfSession ends a session with calls that wait for a person or run. The question
// closes; the running call continues.
func TestEndOfSession(t *testing.T) {
	for _, name := range []string{"look", "write"} {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			h := httpapitest.Start(t, httpapitest.Options{MCP: true, Run: g.run})
			c := connect(t, h, withSession, nil)
			ended := make(chan error, 1)
			go func() { // ends with the session
				_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
				ended <- err
			}()
			if name == "write" {
				becomes(t, h, func(o operation.Info) bool { return o.State == operation.AwaitingApproval })
			} else {
				<-g.inside
			}
			end(t, h, c.ID())
			<-ended
			if name == "look" {
				becomes(t, h, func(o operation.Info) bool { return o.Left && o.State == operation.Running })
				close(g.open)
				becomes(t, h, func(o operation.Info) bool { return o.State == operation.Done })
				return
			}
			becomes(t, h, func(o operation.Info) bool { return o.State == operation.Done })
			if got := records(t, h); g.calls.Load() != 0 || len(got) != 1 || got[0].State != approval.Canceled {
				t.Errorf("the tool ran %d times, and the approvals are %+v; want one that is closed", g.calls.Load(), got)
			}
		})
	}
}

// newSession starts a session of the raw client.
func newSession(t *testing.T, h *httpapitest.Host) (id string) {
	t.Helper()
	begun, _, err := post(t.Context(), h, "", "initialize", `"protocolVersion":"`+withSession+`","capabilities":{},"clientInfo":{"name":"raw","version":"1"}`)
	if err != nil {
		t.Fatal(err)
	}
	return begun.Header.Get("Mcp-Session-Id")
}

// TestCancelAfterADrop drops the request of a call that runs. Then its client cancels the
// call: at once, or the same call made again. Either ends the call, and the same call made
// after that is a new one.
func TestCancelAfterADrop(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("made again %t", again), func(t *testing.T) {
			g := newGate()
			h := httpapitest.Start(t, httpapitest.Options{MCP: true, Run: g.run})
			session := newSession(t, h)
			ended := make(chan error, 2)
			start := func() (id int32, drop context.CancelFunc) {
				ctx, drop := context.WithCancel(t.Context())
				id = lastID.Load() + 1 // before the message has it
				go func() {            // ends with drop, or the call
					_, _, err := post(ctx, h, session, "tools/call", callOf("look"))
					ended <- err
				}()
				return id, drop
			}
			id, drop := start()
			inside := <-g.inside
			drop()
			<-ended
			becomes(t, h, func(o operation.Info) bool { return o.Left })
			if again {
				id, drop = start()
				defer drop()
				becomes(t, h, func(o operation.Info) bool { return !o.Left })
			}
			if _, _, err := post(t.Context(), h, session, "notifications/cancelled", fmt.Sprintf(`"requestId":%d`, id)); err != nil {
				t.Fatal(err)
			}
			<-inside.Done()
			if again {
				<-ended
			}
			close(g.open)
			_, got, err := post(t.Context(), h, session, "tools/call", callOf("look"))
			if err != nil || !strings.Contains(got, `"text":"done"`) || g.calls.Load() != 2 {
				t.Errorf("the same call after that: %s, %v, and the tool ran %d times; want the result of a second run", got, err, g.calls.Load())
			}
		})
	}
}
