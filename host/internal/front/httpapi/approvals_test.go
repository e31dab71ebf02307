package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// record is the part of an approval that tests look at.
type record struct {
	ID            string `json:"id"`
	Call          string `json:"call"`
	User          string `json:"user"`
	Tool          string `json:"tool"`
	State         string `json:"state"`
	ArgumentsHash string `json:"arguments_hash"`
	PreviewDigest string `json:"preview_digest"`
	Context       string `json:"context"`
	Arguments     any    `json:"arguments"`
	DecidedBy     string `json:"decided_by"`
	Via           string `json:"via"`
	Message       string `json:"message"`
	Standing      bool   `json:"standing"`
	Display       struct {
		Complete bool
		Lines    []struct{ Kind, Label, Text string }
	} `json:"display"`
}

// asking starts a host that tells callers at once that a person is asked.
func asking(t *testing.T) *httpapitest.Host {
	t.Helper()
	return httpapitest.Start(t, httpapitest.Options{Patience: time.Millisecond})
}

// pend makes a call that waits for a person.
func pend(t *testing.T, h *httpapitest.Host, token, body string) outcome {
	t.Helper()
	var pending outcome
	ask(t, h, token, "POST", "/v1/calls", body).into(t, http.StatusAccepted, &pending)
	if pending.Status != "pending" || !strings.HasPrefix(pending.ApprovalID, "ap_") || pending.Error.Code != "PENDING_APPROVAL" {
		t.Fatalf("the call = %+v, want it to wait for a person", pending)
	}
	return pending
}

// seen returns the body of a decision by a user who has seen an approval.
func seen(t *testing.T, h *httpapitest.Host, id, more string) string {
	t.Helper()
	r, err := h.Approvals.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"arguments_hash":%q,"preview_digest":%q`, r.ArgumentsHash, r.PreviewDigest)
	if more != "" {
		body += "," + more
	}
	return body + "}"
}

func TestApprove(t *testing.T) {
	h := asking(t)
	pending := pend(t, h, h.Agent, `{"tool":"write","arguments":{"text":"hi"},"context":"because"}`)
	path := "/v1/approvals/" + pending.ApprovalID

	var list []record
	ask(t, h, h.Approver, "GET", "/v1/approvals?state=open,approved", "").into(t, http.StatusOK, &list)
	if len(list) != 1 || list[0].ID != pending.ApprovalID || list[0].Arguments != nil {
		t.Errorf("the list = %+v, want one without arguments", list)
	}
	var whole record
	ask(t, h, h.Approver, "GET", path, "").into(t, http.StatusOK, &whole)
	if diff := cmp.Diff(map[string]any{"text": "hi"}, whole.Arguments); diff != "" || whole.Context != "because" || !whole.Display.Complete {
		t.Errorf("the approval = %+v", whole)
	}

	// An approval needs an approver who has seen it.
	for _, verb := range []string{"/approve", "/reject"} {
		ask(t, h, h.Approver, "POST", path+verb, `{"arguments_hash":"sha256:0"}`).problem(t, http.StatusConflict, "")
		ask(t, h, h.Approver, "POST", path+verb, `{"arguments_hash":"`+whole.ArgumentsHash+`","preview_digest":"sha256:0"}`).problem(t, http.StatusConflict, "")
		ask(t, h, h.Approver, "POST", path+verb, "").problem(t, http.StatusBadRequest, "arguments_hash")
		askControl(t, h, h.Key, "POST", path+verb, `{"message":"fine"}`).problem(t, http.StatusBadRequest, "arguments_hash")
	}
	var got record
	ask(t, h, h.Approver, "POST", path+"/approve", `{"arguments_hash":"`+whole.ArgumentsHash+`","message":"fine"}`).into(t, http.StatusOK, &got)
	if got.DecidedBy != httpapitest.Ann || got.Via != "rest" || got.Message != "fine" {
		t.Errorf("the decision = %+v", got)
	}
	var done outcome
	ask(t, h, h.Agent, "GET", "/v1/calls/"+pending.ToolCallID+"?wait=60", "").into(t, http.StatusOK, &done)
	if done.Status != "success" || done.Result.Content != `write {"text":"hi"}` {
		t.Errorf("the call = %+v", done)
	}
	ask(t, h, h.Approver, "POST", path+"/approve", seen(t, h, pending.ApprovalID, "")).problem(t, http.StatusConflict, "")
	ask(t, h, h.Approver, "POST", path+"/reject", seen(t, h, pending.ApprovalID, "")).problem(t, http.StatusConflict, "")
}

func TestReject(t *testing.T) {
	h := asking(t)
	pending := pend(t, h, h.Agent, `{"tool":"write"}`)
	path := "/v1/approvals/" + pending.ApprovalID
	ask(t, h, h.Approver, "POST", path+"/reject", `{"always":true}`).problem(t, http.StatusBadRequest, "always")
	var got record
	askControl(t, h, h.Key, "POST", path+"/reject", seen(t, h, pending.ApprovalID, `"message":"wrong file"`)).into(t, http.StatusOK, &got)
	if got.State != "rejected" || got.Via != "cli" {
		t.Errorf("the decision = %+v", got)
	}
	var done struct {
		Status      string
		UserMessage string `json:"user_message"`
	}
	ask(t, h, h.Agent, "GET", "/v1/calls/"+pending.ToolCallID+"?wait=1m", "").into(t, http.StatusOK, &done)
	if done.Status != "rejected" || done.UserMessage != "wrong file" {
		t.Errorf("the call = %+v", done)
	}
}

// Approving one call frees no other, and an approver decides about those users
// only whom its credential names. The control is the approver that may.
func TestApproversReach(t *testing.T) {
	var ran atomic.Int32
	h := httpapitest.Start(t, httpapitest.Options{
		Patience: time.Millisecond,
		Run: func(context.Context, tool.Call, tool.Sink) (tool.Result, error) {
			ran.Add(1)
			return tool.Result{}, nil
		},
	})
	a := pend(t, h, h.BobsAgent, `{"tool":"write","arguments":{"text":"a"}}`)
	b := pend(t, h, h.BobsAgent, `{"tool":"write","arguments":{"text":"b"}}`)
	path := "/v1/approvals/" + a.ApprovalID
	var list []record
	ask(t, h, h.Approver, "GET", "/v1/approvals", "").into(t, http.StatusOK, &list)
	if len(list) != 0 {
		t.Errorf("an approver of other users sees %+v", list)
	}
	ask(t, h, h.Approver, "GET", path, "").problem(t, http.StatusNotFound, "")
	ask(t, h, h.Approver, "POST", path+"/approve", "").problem(t, http.StatusNotFound, "")
	ask(t, h, h.BobsAgent, "POST", path+"/approve", "").problem(t, http.StatusForbidden, "role approver")
	ask(t, h, h.BobsAgent, "GET", "/v1/approvals", "").problem(t, http.StatusForbidden, "role approver")
	ask(t, h, h.Admin, "POST", path+"/approve", "").problem(t, http.StatusForbidden, "role approver")
	// An admin who is no approver of bob's sees the call, and is told who may decide.
	var whole struct {
		MayNotDecide bool `json:"may_not_decide"`
		Approvers    []struct{ User, Token string }
	}
	askControl(t, h, h.Key, "GET", path, "").into(t, http.StatusOK, &whole)
	if !whole.MayNotDecide || len(whole.Approvers) != 1 || whole.Approvers[0].Token != "both-approver" {
		t.Errorf("the call of another user = %+v, want that the token both-approver may decide", whole)
	}
	for _, verb := range []string{"/approve", "/reject"} {
		askControl(t, h, h.Key, "POST", path+verb, seen(t, h, a.ApprovalID, "")).problem(t, http.StatusForbidden, "with the token both-approver")
	}
	if ran.Load() != 0 {
		t.Fatal("a call ran that nobody has approved")
	}

	ask(t, h, h.BothApprover, "GET", "/v1/approvals?user=bob", "").into(t, http.StatusOK, &list)
	if len(list) != 2 {
		t.Errorf("the approver of both sees %+v", list)
	}
	var got record
	ask(t, h, h.BothApprover, "POST", path+"/approve", seen(t, h, a.ApprovalID, "")).into(t, http.StatusOK, &got)
	var done outcome
	ask(t, h, h.BobsAgent, "GET", "/v1/calls/"+a.ToolCallID+"?wait=1m", "").into(t, http.StatusOK, &done)
	ask(t, h, h.BobsAgent, "GET", "/v1/calls/"+b.ToolCallID, "").into(t, http.StatusAccepted, &done)
	if ran.Load() != 1 {
		t.Errorf("%d calls ran, want the one that was approved", ran.Load())
	}
}

func TestApprovalsWait(t *testing.T) {
	h := asking(t)
	answers := make(chan answer, 1)
	go func() { answers <- ask(t, h, h.Approver, "GET", "/v1/approvals?wait=1m", "") }()
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"look"}`) // not visible to it
	pending := pend(t, h, h.Agent, `{"tool":"write"}`)
	var list []record
	(<-answers).into(t, http.StatusOK, &list)
	if len(list) != 1 || list[0].ID != pending.ApprovalID {
		t.Errorf("the wait gives %+v", list)
	}
	ask(t, h, h.Approver, "GET", "/v1/approvals?state=spent&wait=1ms", "").into(t, http.StatusOK, &list)
	if len(list) != 0 {
		t.Errorf("the wait for nothing gives %+v", list)
	}
	ask(t, h, h.Approver, "GET", "/v1/approvals?state=opne", "").problem(t, http.StatusBadRequest, "opne")
	ask(t, h, h.Approver, "GET", "/v1/approvals?wait=soon", "").problem(t, http.StatusBadRequest, "soon")
	ask(t, h, h.Approver, "GET", "/v1/approvals?limit=-1", "").problem(t, http.StatusBadRequest, "limit")
}

func TestGrants(t *testing.T) {
	h := asking(t)
	pending := pend(t, h, h.Agent, `{"tool":"write"}`)
	var got record
	ask(t, h, h.Approver, "POST", "/v1/approvals/"+pending.ApprovalID+"/approve", seen(t, h, pending.ApprovalID, `"grant":{}`)).into(t, http.StatusOK, &got)
	var grants []struct{ ID, User, Tool string }
	ask(t, h, h.Approver, "GET", "/v1/grants", "").into(t, http.StatusOK, &grants)
	if len(grants) != 1 || grants[0].Tool != "write" || grants[0].User != httpapitest.Ann {
		t.Fatalf("grants = %+v", grants)
	}
	var done outcome
	ask(t, h, h.Agent, "GET", "/v1/calls/"+pending.ToolCallID+"?wait=1m", "").into(t, http.StatusOK, &done)
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"write","arguments":{"text":"unasked"}}`).into(t, http.StatusOK, &done)
	if done.Status != "success" {
		t.Errorf("a call that the grant covers = %+v", done)
	}
	pend(t, h, h.BobsAgent, `{"tool":"write"}`) // it belongs to no one else

	path := "/v1/grants/" + grants[0].ID
	confirmGrant(t, h, path)
	ask(t, h, h.Agent, "DELETE", path, "").problem(t, http.StatusForbidden, "role")
	var revoked struct{ ID, Revoked string }
	ask(t, h, h.Approver, "DELETE", path, "").into(t, http.StatusOK, &revoked)
	if revoked.Revoked == "" {
		t.Errorf("the revoked grant = %+v", revoked)
	}
	ask(t, h, h.Approver, "DELETE", path, "").problem(t, http.StatusConflict, "revoked")
	pend(t, h, h.Agent, `{"tool":"write","arguments":{"text":"asked again"}}`)
	ask(t, h, h.Approver, "GET", "/v1/grants", "").into(t, http.StatusOK, &grants)
	if len(grants) != 0 {
		t.Errorf("grants in force = %+v", grants)
	}
	ask(t, h, h.Approver, "GET", "/v1/grants?all=true", "").into(t, http.StatusOK, &grants)
	if len(grants) != 1 {
		t.Errorf("all grants = %+v", grants)
	}
	ask(t, h, h.Approver, "GET", "/v1/grants?all=maybe", "").problem(t, http.StatusBadRequest, "maybe")
}

// confirmGrant replaces the program behind a grant, and confirms the grant.
func confirmGrant(t *testing.T, h *httpapitest.Host, path string) {
	t.Helper()
	ask(t, h, h.Approver, "POST", path+"/confirm", `{"basis":"sha256:0"}`).problem(t, http.StatusConflict, "not paused")
	var specs []tool.Spec
	for _, e := range h.Catalog.Entries() {
		specs = append(specs, e.Spec)
	}
	if err := h.Catalog.Publish("test", "another digest", specs); err != nil {
		t.Fatal(err)
	}
	pending := pend(t, h, h.Agent, `{"tool":"write","arguments":{"text":"paused"}}`)
	var whole struct {
		Paused []struct {
			ID      string
			Changes []string
		}
	}
	ask(t, h, h.Approver, "GET", "/v1/approvals/"+pending.ApprovalID, "").into(t, http.StatusOK, &whole)
	var grants []struct {
		ID, State string
		Paused    struct {
			Changes []string
			Basis   string
		}
	}
	ask(t, h, h.Approver, "GET", "/v1/grants", "").into(t, http.StatusOK, &grants)
	const why = "the program of the plugin has changed"
	if len(grants) != 1 || grants[0].State != "paused" || len(grants[0].Paused.Changes) != 1 || grants[0].Paused.Changes[0] != why {
		t.Fatalf("grants = %+v, want one that is paused: %s", grants, why)
	}
	if len(whole.Paused) != 1 || whole.Paused[0].ID != grants[0].ID || whole.Paused[0].Changes[0] != why {
		t.Errorf("the approval names %+v, want the grant", whole.Paused)
	}
	ask(t, h, h.Approver, "POST", path+"/confirm", `{}`).problem(t, http.StatusBadRequest, "basis")
	ask(t, h, h.Approver, "POST", path+"/confirm", `{"basis":"sha256:0"}`).problem(t, http.StatusConflict, "has changed since it was shown")
	ask(t, h, h.Approver, "POST", path+"/confirm", `{"basis":"`+grants[0].Paused.Basis+`"}`).into(t, http.StatusOK, &grants[0])
	var done outcome
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"write","arguments":{"text":"confirmed"}}`).into(t, http.StatusOK, &done)
	if grants[0].State != "active" || done.Status != "success" {
		t.Errorf("confirmed, the grant is %s and a call %s", grants[0].State, done.Status)
	}
}

func TestGrantTerms(t *testing.T) {
	h := asking(t)
	for _, tt := range []struct{ body, problem string }{
		{`{"grant":null}`, "a JSON object"},
		{`{"grant":[]}`, "a JSON object"},
		{`{"grant":{"until":"1h"}}`, "members are commands, for, path, plugin, session, uses"},
		{`{"grant":{"for":"soon"}}`, "30m"},
		{`{"grant":{"for":"-1h"}}`, "30m"},
		{`{"grant":{"for":3600}}`, "a string"},
		{`{"grant":{"for":"100000h"}}`, "at most"},
		{`{"grant":{"uses":1.5}}`, "a whole number"},
		{`{"grant":{"uses":-2}}`, "at least 1"},
		{`{"grant":{"uses":0}}`, "at least 1"},
		{`{"grant":{"path":""}}`, "leave it out"},
		{`{"grant":{"for":""}}`, "30m"},
		{`{"grant":{"session":true}}`, "no session that ends"},
		{`{"grant":{"commands":"ls"}}`, "a list of strings"},
		{`{"grant":{"commands":["ls"]}}`, "no shell command"},
		{`{"grant":{"path":"src"}}`, "no workspace"},
		{`{"grant":{"uses":1,"uses":2}}`, "two members"},
	} {
		pending := pend(t, h, h.Agent, `{"tool":"write"}`)
		path := "/v1/approvals/" + pending.ApprovalID
		ask(t, h, h.Approver, "POST", path+"/approve", seen(t, h, pending.ApprovalID, tt.body[1:len(tt.body)-1])).problem(t, http.StatusBadRequest, tt.problem)
		ask(t, h, h.Approver, "POST", path+"/reject", seen(t, h, pending.ApprovalID, "")).into(t, http.StatusOK, &record{})
	}
	pending := pend(t, h, h.Agent, `{"tool":"write"}`)
	var got struct{ Grants []approval.Grant }
	ask(t, h, h.Approver, "POST", "/v1/approvals/"+pending.ApprovalID+"/approve", seen(t, h, pending.ApprovalID, `"grant":{"plugin":true,"for":"30m","uses":3}`)).
		into(t, http.StatusOK, &got)
	if len(got.Grants) != 1 {
		t.Fatalf("approve gives the grants %+v", got.Grants)
	}
	switch g := got.Grants[0]; {
	case g.Tool != "", g.MaxUses != 3, g.Expires.Sub(g.Created) != 30*time.Minute, g.State != approval.GrantActive,
		!strings.Contains(g.Covers, "every tool"):
		t.Errorf("approve gives the grant %+v", g)
	}
}
