package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/sdk/tool"
)

// watcher follows the events of a host.
type watcher struct {
	next func() (client.Event, error, bool)
	stop func()
}

// watch follows events until the end of the test, and returns when the host
// has begun to send.
func watch(t *testing.T, h *httpapitest.Host, token, after string, kinds ...event.Kind) *watcher {
	t.Helper()
	c, err := client.New(client.Options{URL: h.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{}
	w.next, w.stop = iter.Pull2(c.Events(t.Context(), after, kinds...))
	t.Cleanup(func() {
		w.stop()
		c.Close()
	})
	if e, err, ok := w.next(); err != nil || !ok || e.Kind != "" || e.ID == "" {
		t.Fatalf("the stream begins with %+v, %v; want where it begins", e, err)
	}
	return w
}

// event returns the next event that says something.
func (w *watcher) event(t *testing.T) client.Event {
	t.Helper()
	for {
		e, err, ok := w.next()
		if err != nil || !ok {
			t.Fatalf("the stream ended: %v", err)
		}
		if e.Kind != "" {
			return e
		}
	}
}

// end returns why the stream ended, after events that may still have been on
// their way.
func (w *watcher) end() error {
	for {
		if _, err, ok := w.next(); err != nil || !ok {
			return err
		}
	}
}

// The bytes of a stream are those of the specification.
func TestEventsOnTheWire(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	response, err := http.DefaultTransport.RoundTrip(newRequest(t, h.URL, h.Agent, "GET", "/v1/events?types=agent.state", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type = %q", got)
	}
	lines := bufio.NewScanner(response.Body)
	read := func(n int) string {
		var text []string
		for range n {
			lines.Scan()
			text = append(text, lines.Text())
		}
		return strings.Join(text, "\n")
	}
	begin := h.Events.Subscribe("").Position()
	if got, want := read(4), "retry: 2000\n: alive\nid: "+begin+"\n"; got != want {
		t.Errorf("the stream begins %q, want %q", got, want)
	}
	h.Events.Publish(httpapitest.Ann, event.ToolProgress{ID: "tc_1", Progress: tool.Progress{Message: "not asked for"}})
	h.Events.Publish(httpapitest.Ann, event.AgentState{Session: "a\nb", State: event.Idle})
	id := h.Events.Subscribe("").Position()
	if got, want := read(4), "id: "+id+"\nevent: agent.state\ndata: "+`{"session":"a\nb","state":"idle"}`+"\n"; got != want {
		t.Errorf("an event is %q, want %q", got, want)
	}
}

// The events of an approved write arrive in the order that clients expect.
func TestEventsOfAnApprovedCall(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{
		Patience: time.Millisecond,
		Run: func(_ context.Context, _ tool.Call, sink tool.Sink) (tool.Result, error) {
			sink.Progress(tool.Progress{Progress: 1, Total: 2, Message: "half"})
			r := tool.TextResult("written")
			r.Effects = []tool.Effect{{Kind: "file.changed", Target: "a.txt", Operation: "create"}}
			return r, nil
		},
	})
	w := watch(t, h, h.Agent, "")
	pending := pend(t, h, h.Agent, `{"tool":"write","arguments":{"text":"hi"}}`)
	ask(t, h, h.Approver, "POST", "/v1/approvals/"+pending.ApprovalID+"/approve", seen(t, h, pending.ApprovalID, "")).into(t, http.StatusOK, &struct{}{})
	var got []string
	for len(got) == 0 || got[len(got)-1] != "agent.state idle" {
		e := w.event(t)
		var data struct {
			State, Status, Path, Message string
			RequiresApproval             *bool `json:"requires_approval"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		message, _, _ := strings.Cut(data.Message, " ap_")
		words := []string{string(e.Kind)}
		for _, value := range []string{data.State, data.Status, data.Path, message} {
			if value != "" {
				words = append(words, value)
			}
		}
		if data.RequiresApproval != nil {
			words = append(words, fmt.Sprintf("requires_approval=%v", *data.RequiresApproval))
		}
		got = append(got, strings.Join(words, " "))
	}
	want := []string{
		"tool.call requires_approval=true",
		"tool.approval open",
		"agent.state awaiting_approval",
		"tool.progress waiting for a person to approve",
		"tool.approval approved",
		"tool.approval spent",
		"agent.state tool_execution",
		"tool.progress half",
		"tool.result success",
		"file.changed a.txt",
		"agent.state idle",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A client that lost its connection continues where it was and misses nothing.
func TestEventsReplay(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	first := watch(t, h, h.Agent, "")
	for i := range 10 {
		h.Events.Publish(httpapitest.Ann, event.CatalogChanged{Tools: i})
	}
	var got []string
	last := ""
	for range 4 {
		e := first.event(t)
		got, last = append(got, string(e.Data)), e.ID
	}
	first.stop()
	second := watch(t, h, h.Agent, last)
	for range 6 {
		got = append(got, string(second.event(t).Data))
	}
	for i, data := range got {
		if want := fmt.Sprintf(`{"tools":%d}`, i); data != want {
			t.Errorf("event %d = %s, want %s", i, data, want)
		}
	}
}

// After a restart, the host does not know which events a client missed, and says so.
func TestEventsAfterARestart(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	w := watch(t, h, h.Agent, "")
	h.Events.Publish("", event.CatalogChanged{Tools: 1})
	last := w.event(t).ID
	h.Stop()
	if err := w.end(); !errors.Is(err, client.ErrEnded) {
		t.Errorf("the stream ended with %v, want ErrEnded", err)
	}

	again := httpapitest.StartIn(t, h.StateDir, httpapitest.Options{})
	again.Events.Publish("", event.CatalogChanged{Tools: 2})
	w = watch(t, again, again.Agent, last)
	if e := w.event(t); e.Kind != event.KindGap || string(e.Data) != `{"missed":null}` {
		t.Errorf("the first event is %s %s, want a gap", e.Kind, e.Data)
	}
	if e := w.event(t); string(e.Data) != `{"tools":2}` {
		t.Errorf("the event after the gap is %s", e.Data)
	}
}

// Each role sees only its events; the control is the admin, who sees all.
func TestEventsAreSeenByWhomTheyConcern(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{})
	watchers := map[string]*watcher{}
	for name, token := range map[string]string{
		"agent": h.Agent, "bob": h.BobsAgent, "approver": h.Approver, "both": h.BothApprover, "admin": h.Admin,
	} {
		watchers[name] = watch(t, h, token, "")
	}
	for _, user := range []string{httpapitest.Ann, httpapitest.Bob, "carol"} {
		h.Events.Publish(user, event.AgentState{Session: user, State: event.Idle})
	}
	h.Events.Publish("", event.PluginState{Name: "fs", Phase: "ready"})
	h.Events.Publish("", event.CatalogChanged{Tools: 9})
	for name, want := range map[string][]string{
		"agent":    {"ann", "catalog.changed"},
		"bob":      {"bob", "catalog.changed"},
		"approver": {"ann", "catalog.changed"},
		"both":     {"ann", "bob", "catalog.changed"},
		"admin":    {"ann", "bob", "carol", "plugin.state", "catalog.changed"},
	} {
		var got []string
		for !slices.Contains(got, "catalog.changed") {
			e := watchers[name].event(t)
			var data struct{ Session string }
			if err := json.Unmarshal(e.Data, &data); err != nil {
				t.Fatal(err)
			}
			if data.Session == "" {
				data.Session = string(e.Kind)
			}
			got = append(got, data.Session)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A stream ends when its token does not count any more.
func TestEventsEndWithTheirToken(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{Configure: func(s *httpapi.Server) { s.SetKeepAlive(time.Millisecond) }})
	gone, stays := watch(t, h, h.Agent, ""), watch(t, h, h.BobsAgent, "")
	if err := h.Tokens.Replace(h.TokenList[1:]); err != nil {
		t.Fatal(err)
	}
	if err := gone.end(); !errors.Is(err, client.ErrEnded) {
		t.Errorf("the stream ended with %v, want ErrEnded", err)
	}
	h.Events.Publish("", event.CatalogChanged{Tools: 1})
	if e := stays.event(t); e.Kind != event.KindCatalogChanged {
		t.Errorf("the other stream gives %s", e.Kind)
	}
}

// A client that does not read delays no other. The host disconnects it and tells it what it has
// missed: at once if it reads in time, otherwise when it returns.
func TestEventsOfASlowReader(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{Configure: func(s *httpapi.Server) { s.SetWriteTimeout(500 * time.Millisecond) }})
	slow, quick := watch(t, h, h.Agent, ""), watch(t, h, h.Approver, "")
	params := json.RawMessage(`"` + strings.Repeat("x", 16_000) + `"`)
	for range 3000 { // 48 MB: more than the ring and the system's buffers hold
		h.Events.Publish(httpapitest.Ann, event.ToolCall{ID: "tc_1", Params: params, Tier: tool.ReadOnly})
		if e := quick.event(t); e.Kind != event.KindToolCall {
			t.Fatalf("the quick reader gets %s", e.Kind)
		}
	}
	last := ""
	for {
		e, err, ok := slow.next()
		if err != nil || !ok {
			break
		}
		if e.Kind == event.KindGap {
			return
		}
		last = e.ID
	}
	if e := watch(t, h, h.Agent, last).event(t); e.Kind != event.KindGap {
		t.Errorf("after the cut comes %s, want a gap", e.Kind)
	}
}
