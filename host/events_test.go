package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// told is an event as a program reads it.
type told struct {
	id, kind string
	data     map[string]any
}

// String returns what these tests compare: the event without ids and times.
func (e told) String() string {
	words := []string{e.kind}
	for _, name := range []string{"tool", "requires_approval", "state", "message", "status", "path", "operation"} {
		if v, ok := e.data[name]; ok {
			words = append(words, fmt.Sprint(v))
		}
	}
	return strings.Join(words, " ")
}

// follow opens the stream of events with a token and returns its events. The stream has begun
// when follow returns.
func follow(t *testing.T, h *host, token, after string) <-chan told {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && lines.Text() != "" { // the id to begin from
		continue
	}
	events := make(chan told, 1000)
	done := make(chan struct{})
	go func() { // ends with cancel; the clean-up waits for it
		defer close(done)
		var e told
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.kind = value
			case "data":
				_ = json.Unmarshal([]byte(value), &e.data) // invalid data matches no expected event
			case "":
				if e.kind != "" && e.kind != "catalog.changed" { // a plugin may have started
					events <- e
				}
				e = told{}
			}
		}
	}()
	t.Cleanup(func() { cancel(); response.Body.Close(); <-done })
	return events
}

// eventsTo reads events up to one whose String is last.
func eventsTo(t *testing.T, events <-chan told, last string) (all []told) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		select {
		case e := <-events:
			if all = append(all, e); e.String() == last {
				return all
			}
		case <-ctx.Done():
			t.Fatalf("still not: %s after %v", last, all)
		}
	}
}

func texts(events []told) (all []string) {
	for _, e := range events {
		all = append(all, e.String())
	}
	return all
}

// TestEventsOfAnApprovedWrite follows an approved write: which events there are and in which
// order, what a reconnecting watcher receives, and that other users see none of it.
func TestEventsOfAnApprovedWrite(t *testing.T) {
	t.Parallel()
	bobs, digest := auth.NewToken()
	h := serve(t, writeConfig(t, listening+writing+counting+fmt.Sprintf(
		"auth {\n token \"bob\" {\n sha256 = %q\n user = \"bob\"\n roles = [\"agent\"]\n }\n}\n", digest)))
	mine, his := follow(t, h, h.token, ""), follow(t, h, bobs, "")

	call, id := h.begin(t, "write_file", map[string]any{"path": "a.txt", "content": "hello\n"}, "Toolhost-Session", "s1")
	h.answer(t, "approve", id)
	h.outcome(t, call)
	events := eventsTo(t, mine, "agent.state idle")
	want := []string{
		"tool.call write_file true",
		"tool.approval write_file open",
		"agent.state awaiting_approval",
		"tool.progress waiting for a person to approve " + id,
		"tool.approval write_file approved",
		"tool.approval write_file spent",
		"agent.state tool_execution",
		"tool.result write_file success",
		"file.changed a.txt create",
		"agent.state idle",
	}
	if diff := cmp.Diff(want, texts(events)); diff != "" {
		t.Errorf("events of an approved write (-want +got):\n%s", diff)
	}
	for _, e := range events {
		for name, want := range map[string]string{"session": "s1", "call": call} {
			if got, ok := e.data[name]; ok && got != want {
				t.Errorf("%s has %s %v, want %s", e, name, got, want)
			}
		}
	}

	for i, e := range events { // from each position on
		again := follow(t, h, h.token, e.id)
		if i+1 == len(events) {
			continue
		}
		if diff := cmp.Diff(events[i+1:], eventsTo(t, again, "agent.state idle"), cmp.AllowUnexported(told{})); diff != "" {
			t.Errorf("replay after %s (-first time +replay):\n%s", e, diff)
		}
	}

	// Bob sees his own call and nothing before it, which is also the control.
	h.must(t, 200, "POST", "/v1/calls", bobs, `{"tool": "read_file", "arguments": {"path": "a.txt"}}`)
	for _, events := range []<-chan told{his, follow(t, h, bobs, events[0].id)} {
		want := []string{"tool.call read_file false", "agent.state tool_execution", "tool.result read_file success", "agent.state idle"}
		if diff := cmp.Diff(want, texts(eventsTo(t, events, "agent.state idle"))); diff != "" {
			t.Errorf("what Bob sees (-want +got):\n%s", diff)
		}
	}

	// After a restart the host does not know which events were missed, and reports that.
	h.kill()
	h.restart(t)
	h.post(t, "read_file", map[string]any{"path": "a.txt"})
	if got := eventsTo(t, follow(t, h, h.token, events[3].id), "agent.state idle"); got[0].kind != "gap" {
		t.Errorf("after a restart the first event is %s, want a gap", got[0])
	}
}

// TestEventsOfARejectedWrite follows a rejected write: no event reports that it runs.
func TestEventsOfARejectedWrite(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+writing))
	events := follow(t, h, h.token, "")
	call, id := h.begin(t, "write_file", map[string]any{"path": "a.txt", "content": "hello\n"})
	h.answer(t, "reject", id, "--message", "no")
	h.outcome(t, call)
	want := []string{
		"tool.call write_file true",
		"tool.approval write_file open",
		"agent.state awaiting_approval",
		"tool.progress waiting for a person to approve " + id,
		"tool.approval write_file rejected no",
		"tool.result write_file rejected",
		"agent.state idle",
	}
	if diff := cmp.Diff(want, texts(eventsTo(t, events, "agent.state idle"))); diff != "" {
		t.Errorf("events of a rejected write (-want +got):\n%s", diff)
	}
}
