package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// TestToolsetHidesOtherCalls asks with a token that has a toolset for the calls that the
// same user has made with another token: those of tools outside of the toolset do not exist.
func TestToolsetHidesOtherCalls(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	secret, sum := auth.NewToken()
	limited := auth.Token{
		Name: "limited", SHA256: sum, User: httpapitest.Ann, Roles: auth.Agent,
		Toolsets: []auth.Toolset{{Name: "lookers", Tools: []string{"look", "wipe_it"}}},
	}
	if err := h.Tokens.Replace(append(h.TokenList, limited)); err != nil {
		t.Fatal(err)
	}
	events := watch(t, h, secret, "")
	call := func(token, name string) string {
		t.Helper()
		var made outcome
		ask(t, h, token, "POST", "/v1/calls", `{"tool":"`+name+`","arguments":{"text":"of `+name+`"}}`, "Prefer: respond-async").into(t, http.StatusAccepted, &made)
		return made.ToolCallID
	}
	slow := call(h.Agent, "slow")
	<-h.Started
	asked := call(h.Agent, "wipe_it") // an alias; the toolset has its pattern
	seen := call(h.Agent, "look_it")
	own := call(secret, "nothing") // fails
	list := string(ask(t, h, secret, "GET", "/v1/calls", "").body)
	for id, want := range map[string]bool{slow: false, asked: false, seen: true, own: true} {
		if got := strings.Contains(list, id); got != want {
			t.Errorf("GET /v1/calls shows %s: %t, want %t: %s", id, got, want, list)
		}
	}
	for _, id := range []string{slow, asked} {
		ask(t, h, secret, "GET", "/v1/calls/"+id, "").problem(t, http.StatusNotFound, "there is no call")
		ask(t, h, secret, "POST", "/v1/calls/"+id+"/cancel", "").problem(t, http.StatusNotFound, "no running call")
	}
	var got outcome
	ask(t, h, secret, "GET", "/v1/calls/"+seen, "").into(t, http.StatusOK, &got)
	if !strings.Contains(got.Result.Content, "of look_it") {
		t.Errorf("the call of a tool in the toolset = %+v, want its result", got)
	}
	ask(t, h, h.Agent, "POST", "/v1/calls/"+slow+"/cancel", "").into(t, http.StatusOK, &got)
	// The journal now records its end, and the answer says so.
	ask(t, h, secret, "GET", "/v1/calls/"+slow, "").problem(t, http.StatusNotFound, "there is no call")
	call(secret, "look")
	for last := false; !last; {
		e := events.event(t)
		text := string(e.Data)
		for _, hidden := range []string{slow, asked, "wipe", "slow"} {
			if strings.Contains(text, hidden) {
				t.Errorf("the event %s tells of %s: %s", e.Kind, hidden, text)
			}
		}
		last = strings.Contains(text, "of look\\\"") // the result of the last call
	}
}
