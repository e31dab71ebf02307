package pipeline_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestGrantsForHosts: a standing answer covers the host and port that it was given for, for the
// tools of the plugin, and no call; and a grant for calls covers no connection.
func TestGrantsForHosts(t *testing.T) {
	type try struct {
		user, session, host string
		asked               bool
	}
	session := auth.NewSession()
	for _, tt := range []struct {
		name  string
		terms approval.Terms
		then  []try
	}{
		{"always", approval.Terms{}, []try{
			{"ann", "s1", "example.com", false},
			{"ann", "s2", "example.com", false},
			{"ann", "", "example.com", false},
			{"ann", "s1", "sub.example.com", true},
			{"ann", "s1", "other.example", true},
			{"bob", "s1", "example.com", true},
		}},
		{"the session", approval.Terms{Session: true}, []try{
			{"ann", session, "example.com", false}, {"ann", "s1", "example.com", true}, {"ann", session, "other.example", true},
		}},
		{"twice", approval.Terms{Uses: 2}, []try{
			{"ann", "s1", "example.com", false}, {"ann", "s1", "example.com", false}, {"ann", "s1", "example.com", true},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, plugin := newOnline(t)
			req := request("echo", `{"text":"a"}`)
			req.Caller.Session = session
			f, call := h.online(t, plugin, req)
			got := call.to(t.Context(), "example.com")
			h.decide(t, h.nextQuestion(t), true, &tt.terms)
			if d := <-got; d.err != nil {
				t.Fatal(d)
			}
			call.end(tool.TextResult("done"))
			f.Wait(t.Context(), operation.Forever)
			for _, try := range tt.then {
				req := request("other", `{"text":"b"}`)
				req.Caller = auth.Caller{User: try.user, Client: "test", Session: try.session}
				f, call := h.online(t, plugin, req)
				got := call.to(t.Context(), try.host)
				if try.asked {
					q := h.nextQuestion(t)
					decision := approval.Decision{ID: q.ID, By: auth.Caller{User: try.user, Roles: auth.Approver}, Via: "test"}
					if _, err := h.opts.Approvals.Decide(t.Context(), seeing(q, decision)); err != nil {
						t.Fatal(err)
					}
				}
				d := <-got
				if d.err != nil != try.asked || !try.asked && (d.permission.By != "grant" || !strings.HasPrefix(d.permission.Approval, "gr_")) {
					t.Errorf("%+v: the connection gets %v, %+v", try, d, d.permission)
				}
				h.unasked(t)
				call.end(tool.TextResult("done"))
				f.Wait(t.Context(), operation.Forever)
			}
		})
	}
	change := addSpec()
	change.HasPreview = false
	t.Run("a grant for a connection covers no call", func(t *testing.T) {
		plugin := newConnector()
		h := newHost(t, pipeline.Options{Runner: plugin}, echoSpec(), change)
		f, call := h.online(t, plugin, request("echo", `{"text":"a"}`))
		got := call.to(t.Context(), "example.com")
		h.decide(t, h.nextQuestion(t), true, &approval.Terms{})
		<-got
		call.end(tool.TextResult("done"))
		f.Wait(t.Context(), operation.Forever)
		h.begin(t, request("add", `{"text":"a"}`)) // must ask
	})
	for _, terms := range []approval.Terms{{Plugin: true}, {}} {
		t.Run("a grant for calls covers no connection", func(t *testing.T) {
			plugin := newConnector()
			h := newHost(t, pipeline.Options{Runner: plugin}, echoSpec(), change)
			f, q := h.begin(t, request("add", `{"text":"a"}`))
			h.decide(t, q, true, &terms)
			call := <-plugin.calls
			call.end(tool.TextResult("done"))
			f.Wait(t.Context(), operation.Forever)
			f, call = h.online(t, plugin, request("add", `{"text":"b"}`)) // the control: unasked
			got := call.to(t.Context(), "example.com")
			if q := h.nextQuestion(t); q.Tool != approval.Connect {
				t.Errorf("the question is %+v", q)
			} else {
				h.decide(t, q, false, nil)
			}
			if d := <-got; d.err == nil {
				t.Errorf("the connection gets %v", d)
			}
			call.end(tool.TextResult("done"))
			f.Wait(t.Context(), operation.Forever)
		})
	}
	t.Run("terms that are none of a connection", func(t *testing.T) {
		h, plugin := newOnline(t)
		_, call := h.online(t, plugin, request("echo", `{"text":"a"}`))
		got := call.to(t.Context(), "example.com")
		q := h.nextQuestion(t)
		for _, terms := range []approval.Terms{{Plugin: true}, {Path: "/project"}, {Commands: []string{"make"}}} {
			decision := approval.Decision{ID: q.ID, By: approver, Approve: true, Grant: &terms, Via: "test"}
			if _, err := h.opts.Approvals.Decide(t.Context(), seeing(q, decision)); tool.AsError(err).Code != tool.InvalidArgument {
				t.Errorf("Decide(%+v) = %v, want %s", terms, err, tool.InvalidArgument)
			}
		}
		h.decide(t, q, true, nil)
		<-got
		call.end(tool.TextResult("done"))
	})
}

// TestStopRefusesConnections: while calls are stopped, no connection is allowed, not even by a
// grant, and a question about one is rejected.
func TestStopRefusesConnections(t *testing.T) {
	for _, tt := range []struct {
		name  string
		scope killswitch.Scope
		stops bool
	}{
		{"all", killswitch.Scope{}, true},
		{"the plugin", killswitch.Scope{Plugin: "test"}, true},
		{"another user", killswitch.Scope{User: "bob"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, plugin := newOnline(t)
			f, call := h.online(t, plugin, request("echo", `{"text":"a"}`))
			got := call.to(t.Context(), "granted.example")
			h.decide(t, h.nextQuestion(t), true, &approval.Terms{})
			if d := <-got; d.err != nil {
				t.Fatal(d)
			}
			call.end(tool.TextResult("done"))
			f.Wait(t.Context(), operation.Forever)
			f, call = h.online(t, plugin, request("echo", `{"text":"b"}`))
			ctx, end := context.WithCancel(t.Context()) // package process ends it with the call
			defer end()
			waits := call.to(ctx, "asked.example")
			q := h.nextQuestion(t)
			var ending sync.WaitGroup
			if tt.stops {
				ending.Go(func() { // ends with the call
					f.Wait(t.Context(), operation.Forever)
					end()
				})
			}
			h.halt(t, tt.scope)
			ending.Wait()
			if !tt.stops {
				h.decide(t, q, true, nil)
			}
			if d := <-waits; (d.err != nil) != tt.stops {
				t.Errorf("the connection that waited gets %v", d)
			}
			if state := h.record(t, q.ID).State; tt.stops && state == approval.Open {
				t.Errorf("the question is %s", state)
			}
			// A connection of a call that does not know yet that it has ended.
			if d := <-call.to(t.Context(), "granted.example"); (d.err != nil) != tt.stops || tt.stops && d.err.Code != tool.Unavailable {
				t.Errorf("the next connection, which a grant covers, gets %v", d)
			}
			h.unasked(t)
			call.end(tool.TextResult("done"))
			f.Wait(t.Context(), operation.Forever)
		})
	}
}
