package process

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// callOf returns a call of a user in a session.
func callOf(id, user, session string) *tool.Call {
	return &tool.Call{ID: id, Context: tool.Context{User: user, Session: session}}
}

// deciding is the sink of a call whose connections a person decides about.
func deciding() *tool.Sink {
	return &tool.Sink{Connect: func(context.Context, tool.Destination, bool) (tool.Permission, *tool.Error) {
		return tool.Permission{By: "user"}, nil
	}}
}

// TestCauseOfConnection finds the call that a connection is made for: by its ticket, or if only one caller's
// calls run. In doubt nobody is asked.
func TestCauseOfConnection(t *testing.T) {
	type open struct{ id, user, session string }
	preview := func(o open) open { return open{"preview of " + o.id, o.user, o.session} }
	a1, a2, other, bob := open{"a1", "ann", "s1"}, open{"a2", "ann", "s1"}, open{"a3", "ann", "s2"}, open{"b1", "bob", "s1"}
	owner := Owner{User: "own", Session: "o1"}
	for _, tt := range []struct {
		name   string
		calls  []open // in the order of their starts
		ended  string // a call that has ended
		ticket string // of a call; "wrong" and "short" are nobody's
		want   open   // the call, or only whom the connection belongs to
		none   string // why nobody can be asked; "" if a person can
	}{
		{"none", nil, "", "", open{"", "own", "o1"}, "no call runs"},
		{"one", []open{a1}, "", "", a1, ""},
		{"two of a session: the latest", []open{a1, a2}, "", "", a2, ""},
		{"two of a session, of which one has ended", []open{a1, a2}, "a2", "", a1, ""},
		{"two sessions", []open{a1, other}, "", "", open{"", "own", "o1"}, "several users or sessions"},
		{"two users", []open{a1, bob}, "", "", open{"", "own", "o1"}, "several users or sessions"},
		{"two users, of whom one's call has ended", []open{a1, bob}, "b1", "", a1, ""},
		{"a preview", []open{preview(a1)}, "", "", preview(a1), "a preview"},
		{"a preview of another user", []open{a1, preview(bob)}, "", "", open{"", "own", "o1"}, "several users or sessions"},
		{"by ticket", []open{a1}, "", "a1", a1, ""},
		{"by ticket, among several", []open{a1, bob, other}, "", "a1", a1, ""},
		{"by the ticket of another", []open{a1, bob, other}, "", "b1", bob, ""},
		{"by the ticket of one that has ended", []open{a1, a2}, "a1", "a1", open{"", "own", "o1"}, "has ended"},
		{"by the ticket of a preview", []open{preview(a1)}, "", "preview of a1", preview(a1), "a preview"},
		{"by a wrong ticket", []open{a1}, "", "wrong", open{"", "own", "o1"}, "has ended"},
		{"by a short ticket", []open{a1}, "", "short", open{"", "own", "o1"}, "has ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // each call starts at a later time
				var tickets tickets
				names := map[string][]byte{"wrong": []byte(strings.Repeat("x", ticketSize)), "short": []byte("x")}
				for _, o := range tt.calls {
					sink := deciding()
					if strings.HasPrefix(o.id, "preview") {
						sink = &tool.Sink{}
					}
					name, revoke := tickets.issue(t.Context(), callOf(o.id, o.user, o.session), sink)
					names[o.id] = name
					if o.id == tt.ended {
						revoke()
					}
					<-time.NewTimer(time.Second).C
				}
				got := tickets.cause(names[tt.ticket], owner)
				if (open{got.Call, got.User, got.Session}) != tt.want {
					t.Errorf("the cause is %+v, want %+v", got, tt.want)
				}
				if (got.Connect != nil) != (tt.none == "") || !strings.Contains(got.None, tt.none) || tt.none == "" && got.None != "" {
					t.Errorf("a person can be asked: %v, or not because %q; want %q", got.Connect != nil, got.None, tt.none)
				}
			})
		})
	}
}

// TestQuestionEndsWithItsCall: a connection stops waiting for a person when its call ends, and when
// its client has gone. The control is that the answer arrives.
func TestQuestionEndsWithItsCall(t *testing.T) {
	errOver, errGone := errors.New("the call is over"), errors.New("the client is gone")
	for _, tt := range []struct {
		name string
		act  func(answer, end, goes func())
		want error
	}{
		{"answered", func(answer, _, _ func()) { answer() }, nil},
		{"the call ends", func(_, end, _ func()) { end() }, errOver},
		{"the client goes", func(_, _, goes func()) { goes() }, errGone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tickets tickets
			answer, asked := make(chan struct{}), make(chan struct{})
			sink := &tool.Sink{Connect: func(ctx context.Context, to tool.Destination, wanted bool) (tool.Permission, *tool.Error) {
				close(asked)
				if to.Host != "example.com" || to.Port != 443 || !wanted {
					t.Errorf("asked about %+v, %v", to, wanted)
				}
				select {
				case <-answer:
					return tool.Permission{By: "user"}, nil
				case <-ctx.Done():
					return tool.Permission{}, tool.Errorf(tool.Canceled, "%v", context.Cause(ctx))
				}
			}}
			call, end := context.WithCancelCause(t.Context())
			client, goes := context.WithCancelCause(t.Context())
			defer end(nil)
			defer goes(nil)
			name, revoke := tickets.issue(call, callOf("c1", "ann", "s1"), sink)
			defer revoke()
			cause := tickets.cause(name, Owner{})
			decided := make(chan *tool.Error, 1)
			go func() { // ends with the question
				permission, err := cause.Connect(client, tool.Destination{Host: "example.com", Port: 443}, true)
				if (permission.By == "user") != (err == nil) {
					t.Errorf("the permission is %+v with the error %v", permission, err)
				}
				decided <- err
			}()
			<-asked
			tt.act(func() { close(answer) }, func() { end(errOver) }, func() { goes(errGone) })
			if err := <-decided; (err == nil) != (tt.want == nil) || err != nil && err.Message != tt.want.Error() {
				t.Errorf("the connection gets %v, want %v", err, tt.want)
			}
		})
	}
}
