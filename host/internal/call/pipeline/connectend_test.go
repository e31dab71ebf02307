package pipeline_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestQuestionAtTheEndOfItsCall: a question about a connection that is written while its call ends
// does not stay open, and the call stays ended.
func TestQuestionAtTheEndOfItsCall(t *testing.T) {
	plugin := newConnector()
	h, f, call := onlineHost(t, plugin)
	// hold occupies the only writer of the store until release is closed.
	hold := func() (began, release chan struct{}) {
		began, release = make(chan struct{}), make(chan struct{})
		go func() { // ends with release
			_ = h.opts.Store.Do(context.WithoutCancel(t.Context()), func(*sql.Tx) error {
				close(began)
				<-release
				return nil
			})
		}()
		return began, release
	}
	began, release := hold()
	<-began
	got := call.to(t.Context(), "late.example")
	call.end(tool.TextResult("done"))
	close(release)
	<-got
	if o := f.Wait(t.Context(), operation.Forever); o.Result.Error != nil {
		t.Errorf("the call = %v", o.Result.Error)
	}
	f.Release()
	for _, s := range h.Operations().List(approver) {
		if s.State != operation.Done {
			t.Errorf("the ended call is %s", s.State)
		}
	}
	open, err := h.opts.Approvals.List(t.Context(), approval.Filter{By: approver, States: []approval.State{approval.Open}})
	if err != nil || len(open) > 0 {
		t.Errorf("open are %v, %v; want none", open, err)
	}
}

// TestQuestionsOfACallAreBounded: a call asks about 8 hosts at most, and one that is allowed does not
// wait for the answer about another.
func TestQuestionsOfACallAreBounded(t *testing.T) {
	plugin := newConnector()
	h, _, call := onlineHost(t, plugin)
	got := call.to(t.Context(), "good.example")
	h.decide(t, h.nextQuestion(t), true, nil)
	if d := <-got; d.err != nil {
		t.Fatal(d.err)
	}
	slow := call.to(t.Context(), "slow.example")
	waiting := h.nextQuestion(t)
	if d := <-call.to(t.Context(), "good.example"); d.err != nil { // blocks if it waits for the other
		t.Errorf("an allowed host: %v", d.err)
	}
	h.decide(t, waiting, false, nil)
	<-slow
	for i := range 6 {
		got := call.to(t.Context(), fmt.Sprintf("h%d.example", i))
		h.decide(t, h.nextQuestion(t), false, nil)
		<-got
	}
	if d := <-call.to(t.Context(), "ninth.example"); d.err == nil || d.err.Code != tool.PermissionDenied {
		t.Errorf("the ninth host: %v, want permission_denied", d.err)
	}
	call.end(tool.TextResult("x"))
}

func onlineHost(t *testing.T, plugin *connector) (*host, *operation.Operation, *connecting) {
	t.Helper()
	add := addSpec()
	add.HasPreview = false
	h := newHost(t, pipeline.Options{Runner: plugin}, echoSpec(), add)
	f, call := h.online(t, plugin, request("echo", `{"text":"a"}`))
	return h, f, call
}
