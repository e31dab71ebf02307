package mcpserver

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// sdkSessions returns a function that creates a session of the SDK with a given id.
func sdkSessions(t *testing.T) func(id string) *mcp.ServerSession {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "test"}, &mcp.ServerOptions{Logger: logHandler{hclog.NewNullLogger()}.slog()})
	return func(id string) *mcp.ServerSession {
		session, err := server.Connect(t.Context(), &mcp.StreamableServerTransport{SessionID: id}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
}

// TestSessionsTimeOut checks that idle sessions end, and that sessions with a request under
// way do not.
func TestSessionsTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sessions
		defer s.close()
		open := sdkSessions(t)
		s.beginHTTP(open("idle"), "ann")
		s.beginHTTP(open("busy"), "ann")
		leave, ok := s.enter("busy", "ann")
		if !ok {
			t.Fatal("a session that was begun cannot be entered")
		}
		calls, done := s.of("idle").begin(t.Context())
		defer done()
		<-time.After(sessionTimeout + time.Second)
		synctest.Wait()
		if s.of("idle") != nil || calls.Err() == nil {
			t.Error("an idle session did not end with its calls")
		}
		if s.of("busy") == nil {
			t.Error("a session ended in which a request was under way")
		}
		leave()
		<-time.After(sessionTimeout - time.Second)
		if leave, ok = s.enter("busy", "ann"); !ok {
			t.Fatal("a session ended before its time")
		}
		leave()
		<-time.After(sessionTimeout + time.Second)
		synctest.Wait()
		if _, ok := s.enter("busy", "ann"); ok {
			t.Error("a session did not end that was left alone after a request")
		}
	})
}

// TestSessionsExpireIdle checks that a session survives if a request arrives just as it
// expires.
func TestSessionsExpireIdle(t *testing.T) {
	var s sessions
	defer s.close()
	s.beginHTTP(sdkSessions(t)("one"), "ann")
	leave, ok := s.enter("one", "ann")
	if !ok {
		t.Fatal("a session that was begun cannot be entered")
	}
	s.expire("one")
	if s.of("one") == nil {
		t.Error("a session expired in which a request was under way")
	}
	leave()
	s.expire("one")
	if s.of("one") != nil {
		t.Error("control: an idle session did not expire")
	}
}

// TestSessionsAreBounded begins one session more than an owner may have.
func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s sessions
		defer s.close()
		open := sdkSessions(t)
		s.beginHTTP(open("bobs"), "bob")
		for i := range maxSessions {
			<-time.After(time.Millisecond)
			s.beginHTTP(open(fmt.Sprint(i)), "ann")
		}
		leave, ok := s.enter("0", "ann") // the oldest, but not idle
		if !ok {
			t.Fatal("the first session ended before there were too many")
		}
		defer leave()
		s.beginHTTP(open("last"), "ann")
		for id, want := range map[string]bool{"bobs": true, "0": true, "1": false, "2": true, "last": true} {
			if got := s.of(id) != nil; got != want {
				t.Errorf("session %s is there: %t, want %t", id, got, want)
			}
		}
	})
}

// TestSessionsAreForTheirOwner enters and ends sessions as another user, and a session over a
// pair of streams, which has no owner.
func TestSessionsAreForTheirOwner(t *testing.T) {
	var s sessions
	defer s.close()
	s.beginHTTP(sdkSessions(t)("anns"), ownerOf(auth.Caller{User: "ann", Token: "local"}))
	s.begin("stdio", nil)
	for _, foe := range []auth.Caller{{}, {User: "bob", Token: "local"}, {User: "ann", Token: "ci"}, {User: `ann" "local`}} {
		for _, id := range []string{"anns", "stdio", "none"} {
			if _, ok := s.enter(id, ownerOf(foe)); ok || s.end(id, ownerOf(foe)) {
				t.Errorf("%+v has session %s", foe, id)
			}
		}
	}
	s.forget("stdio")
	if s.of("stdio") != nil || s.of("anns") == nil {
		t.Error("forget dropped another session than it should")
	}
}
