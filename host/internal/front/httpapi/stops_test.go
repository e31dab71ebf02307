package httpapi_test

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// stopped is the part of the answer to a stop that tests look at.
type stopped struct {
	ID, User, Plugin, Reason, By string
	Again                        bool
	CanceledCalls                int `json:"canceled_calls"`
	RejectedApprovals            int `json:"rejected_approvals"`
	Notes, Problems              []string
}

// TestStops stops the calls of bob while ann's go on, and resumes them.
func TestStops(t *testing.T) {
	t.Parallel()
	h := asking(t)
	slow := func(token string) (id string) {
		var begun outcome
		ask(t, h, token, "POST", "/v1/calls", `{"tool":"slow"}`, "Prefer: respond-async").into(t, http.StatusAccepted, &begun)
		return begun.ToolCallID
	}
	anns, bobs := slow(h.Agent), slow(h.BobsAgent)
	<-h.Started
	<-h.Started
	question := pend(t, h, h.BobsAgent, `{"tool":"wipe"}`)
	events, err := http.DefaultTransport.RoundTrip(newRequest(t, h.URL, h.Admin, "GET", "/v1/events?types=calls.stopped", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()

	var stop stopped
	ask(t, h, h.Admin, "POST", "/v1/stops", `{"user":"bob","reason":"a leaked token"}`).into(t, http.StatusOK, &stop)
	if !strings.HasPrefix(stop.ID, "st_") || stop.By != "root" || stop.CanceledCalls != 2 || stop.RejectedApprovals != 1 || stop.Again || len(stop.Notes)+len(stop.Problems) > 0 {
		t.Errorf("the stop = %+v", stop)
	}
	const why = "an administrator has stopped all calls of the user bob: a leaked token"
	for _, id := range []string{bobs, question.ToolCallID} {
		var ended outcome
		ask(t, h, h.BobsAgent, "GET", "/v1/calls/"+id, "").into(t, http.StatusOK, &ended)
		if ended.Error.Code != "UNAVAILABLE" || ended.Error.Message != why {
			t.Errorf("a call of bob = %+v", ended)
		}
	}
	var refused, allowed outcome
	ask(t, h, h.BobsAgent, "POST", "/v1/calls", `{"tool":"look"}`).into(t, http.StatusOK, &refused)
	ask(t, h, h.Agent, "POST", "/v1/calls", `{"tool":"look"}`).into(t, http.StatusOK, &allowed)
	if refused.Error.Message != why || allowed.Status != "success" {
		t.Errorf("then bob's call = %+v, and ann's %+v", refused, allowed)
	}
	ask(t, h, h.BothApprover, "POST", "/v1/approvals/"+question.ApprovalID+"/approve", `{"arguments_hash":"x"}`).problem(t, http.StatusConflict, question.ApprovalID)
	var running []struct {
		ToolCallID string `json:"tool_call_id"`
		State      string
	}
	ask(t, h, h.Agent, "GET", "/v1/calls", "").into(t, http.StatusOK, &running)
	if len(running) == 0 || running[0].ToolCallID != anns || running[0].State != "running" {
		t.Errorf("ann's calls are %+v, want %s running", running, anns)
	}

	// Without a credential one learns that there is a stop, and nothing of it.
	var ready httpapi.Health
	ask(t, h, "", "GET", "/readyz", "").into(t, http.StatusOK, &ready)
	if want := "an administrator has stopped calls: toolhost stop-all --list shows which"; ready.Status != "ready" || !slices.Equal(ready.Problems, []string{want}) {
		t.Errorf("readiness = %+v, want %q", ready, want)
	}
	var explained struct{ Verdict, Stopped string }
	ask(t, h, h.BobsAgent, "POST", "/v1/explain", `{"tool":"look"}`).into(t, http.StatusOK, &explained)
	if explained.Verdict != "allow" || explained.Stopped != why {
		t.Errorf("explain = %+v", explained)
	}
	var plugins []httpapi.Plugin
	ask(t, h, h.Admin, "GET", "/v1/plugins", "").into(t, http.StatusOK, &plugins)
	if len(plugins) != 1 || len(plugins[0].Stops) != 1 || plugins[0].Stops[0].ID != stop.ID {
		t.Errorf("plugins = %+v", plugins)
	}

	var again stopped
	ask(t, h, h.Admin, "POST", "/v1/stops", `{"user":"bob"}`).into(t, http.StatusOK, &again)
	if again.ID != stop.ID || !again.Again || again.Reason != stop.Reason {
		t.Errorf("the same stop again = %+v", again)
	}
	var all []stopped
	ask(t, h, h.Admin, "GET", "/v1/stops", "").into(t, http.StatusOK, &all)
	if len(all) != 1 || all[0].ID != stop.ID {
		t.Errorf("stops = %+v", all)
	}
	ask(t, h, h.Admin, "DELETE", "/v1/stops/"+stop.ID, "").into(t, http.StatusOK, &again)
	ask(t, h, h.Admin, "DELETE", "/v1/stops/"+stop.ID, "").problem(t, http.StatusNotFound, stop.ID)
	ask(t, h, h.BobsAgent, "POST", "/v1/calls", `{"tool":"look"}`).into(t, http.StatusOK, &allowed)
	if allowed.Status != "success" {
		t.Errorf("after resume bob's call = %+v", allowed)
	}
	var told []string
	for lines := bufio.NewScanner(events.Body); len(told) < 2 && lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			told = append(told, data)
		}
	}
	for i, state := range []string{"stopped", "resumed"} {
		want := fmt.Sprintf(`{"id":%q,"state":%q,"user":"bob","calls":"all calls of the user bob","reason":"a leaked token","by":"root"}`, stop.ID, state)
		if told[i] != want {
			t.Errorf("the event is %s, want %s", told[i], want)
		}
	}
}

// TestStopsRefused sends stops that could stop more than was meant.
func TestStopsRefused(t *testing.T) {
	t.Parallel()
	h := httpapitest.Start(t, httpapitest.Options{Patience: time.Millisecond})
	for body, want := range map[string]struct {
		status int
		says   string
	}{
		`{"plugin":"mising"}`:             {http.StatusNotFound, "did you mean missing?"},
		`{"plugin":"x"}`:                  {http.StatusNotFound, "plugins list"},
		`{"user":""}`:                     {http.StatusBadRequest, "user is empty"},
		`{"plugin":""}`:                   {http.StatusBadRequest, "leave it out to stop every plugin"},
		`{"plugins":["missing"]}`:         {http.StatusBadRequest, "plugins"},
		`{"user":"a\nb"}`:                 {http.StatusBadRequest, "the user of the stop cannot be shown"},
		`{"reason":"a\nb"}`:               {http.StatusBadRequest, "the reason of the stop cannot be shown"},
		`{"user":"bob","reason":["why"]}`: {http.StatusBadRequest, "reason"},
	} {
		ask(t, h, h.Admin, "POST", "/v1/stops", body).problem(t, want.status, want.says)
	}
	var all []stopped
	ask(t, h, h.Admin, "GET", "/v1/stops", "").into(t, http.StatusOK, &all)
	if len(all) > 0 {
		t.Errorf("in force are %+v", all)
	}
	var stop stopped
	ask(t, h, h.Admin, "POST", "/v1/stops", `{"user":"nobody","plugin":"missing"}`).into(t, http.StatusOK, &stop)
	if !slices.ContainsFunc(stop.Notes, func(note string) bool { return strings.Contains(note, "no token is for the user nobody") }) {
		t.Errorf("the stop of an unknown user = %+v", stop)
	}
}

// TestHintsNameTheConfiguration: a person can type the commands in hints, wherever the configuration
// is. Health needs no credential, so over the network it names no files of the host.
func TestHintsNameTheConfiguration(t *testing.T) {
	t.Parallel()
	h := httpapitest.Start(t, httpapitest.Options{Command: func(words string) string { return "toolhost " + words + " --config /etc/team.hcl" }})
	ask(t, h, h.Admin, "DELETE", "/v1/stops/st_none", "").problem(t, http.StatusNotFound, "toolhost stop-all --list --config /etc/team.hcl shows those in force")
	ask(t, h, h.Admin, "POST", "/v1/stops", `{}`).into(t, http.StatusOK, new(stopped))
	const stops = "an administrator has stopped calls: toolhost stop-all --list"
	for where, tt := range map[string]struct {
		answer answer
		want   string
	}{
		"the network":        {ask(t, h, "", "GET", "/readyz", ""), stops + " shows which"},
		"the control socket": {askControl(t, h, "", "GET", "/readyz", ""), stops + " --config /etc/team.hcl shows which"},
	} {
		var ready httpapi.Health
		tt.answer.into(t, http.StatusOK, &ready)
		if !slices.Equal(ready.Problems, []string{tt.want}) {
			t.Errorf("readiness over %s = %q, want %q", where, ready.Problems, tt.want)
		}
	}
}
