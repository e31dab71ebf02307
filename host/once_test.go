package main

import (
	"context"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
)

// TestKillWithOpenApprovals kills a host while a call waits for a person: after the restart,
// the question can be answered and lets the same call run once.
func TestKillWithOpenApprovals(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	args := map[string]any{"note": "a"}
	_, first := h.begin(t, "probe_count", args)
	_, open := h.begin(t, "probe_count", map[string]any{"note": "open"})
	h.kill()
	h.restart(t)
	if records := h.open(t, 2); !slices.ContainsFunc(records, func(r approval.Record) bool { return r.ID == first }) {
		t.Fatalf("after the restart %+v are open, want %s", records, first)
	}
	h.answer(t, "approve", first)
	h.kill() // approved but not used
	h.restart(t)

	_, other := h.begin(t, "probe_count", map[string]any{"note": "b"}) // different arguments
	if other == first || len(h.counted()) > 0 {
		t.Errorf("other arguments have %s, calls that ran: %v", other, h.counted())
	}
	if o := h.post(t, "probe_count", args); o.Status != client.Success {
		t.Errorf("the approved call, sent again = %s", asJSON(o))
	}
	call, second := h.begin(t, "probe_count", args) // the approval counted only once
	if second == first {
		t.Errorf("%s is used twice", first)
	}
	if _, again := h.begin(t, "probe_count", map[string]any{"note": "open"}); again != open {
		t.Errorf("a call that was asked about before the restart gets %s, want its question %s", again, open)
	}

	// The control: with a standing answer, the same call runs each time.
	h.answer(t, "approve", second, "--always")
	h.outcome(t, call)
	if o := h.post(t, "probe_count", args); o.Status != client.Success || len(h.counted()) != 3 {
		t.Errorf("control: the call = %s, calls that ran: %v", asJSON(o), h.counted())
	}
}

// TestApprovedCallRunsOnce kills a host while an approved call runs. The approval is spent:
// the same call asks again. The control restores the approval in the database.
func TestApprovedCallRunsOnce(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	args := map[string]any{"note": "a", "hold": true}
	_, id := h.begin(t, "probe_count", args)
	runOnce := func(want int) {
		t.Helper()
		eventually(t, "the call runs", func() bool { return len(h.counted()) == want })
		h.kill()
	}
	h.answer(t, "approve", id)
	runOnce(1)
	h.restart(t)
	if _, again := h.begin(t, "probe_count", args); again == id {
		t.Errorf("%s is used twice", id)
	}
	h.kill()
	if n := len(h.counted()); n != 1 {
		t.Errorf("the call ran %d times", n)
	}

	sqlite(t, h.stateDir, "UPDATE approvals SET state = 'canceled' WHERE state = 'open'",
		"UPDATE approvals SET state = 'approved', spent_by = '', closed = 0 WHERE id = '"+id+"'")
	h.restart(t)
	go h.send("POST", "/v1/calls", h.token, asJSON(map[string]any{"tool": "probe_count", "arguments": args})) // ends with the host
	runOnce(2)
}

// TestKeyedCallRunsOnce kills a host while a call with an idempotency key runs, and repeats
// the call. The control repeats one without a key.
func TestKeyedCallRunsOnce(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	held := func(key ...string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		before := len(h.counted())
		go func() { // ends with the host
			defer cancel()
			_, _, _ = h.send("POST", "/v1/calls", h.token, `{"tool": "probe_tally", "arguments": {"note": "a", "hold": true}}`, key...)
		}()
		eventually(t, "the call runs", func() bool { return len(h.counted()) > before })
		h.kill()
		<-ctx.Done()
		h.restart(t)
	}
	held("Idempotency-Key", "k")
	o := h.post(t, "probe_tally", map[string]any{"note": "a", "hold": true}, "Idempotency-Key", "k")
	if o.Error == nil || o.Error.Code != "UNKNOWN_OUTCOME" || len(h.counted()) != 1 {
		t.Errorf("the call sent again = %s, calls that ran: %v", asJSON(o), h.counted())
	}
	if o := h.post(t, "probe_tally", map[string]any{"note": "b"}, "Idempotency-Key", "k"); o.Error == nil || o.Error.Code != "CONFLICT" {
		t.Errorf("another call with the key = %s", asJSON(o))
	}
	rows := h.journal(t, "--tool", "probe_tally")
	if len(rows) < 2 || rows[1].Code != "unknown_outcome" {
		t.Errorf("the journal has %+v, want that the outcome is unknown", rows)
	}
	held() // the control
	if n := len(h.counted()); n != 2 {
		t.Errorf("control: without a key the call ran %d times, want 2", n)
	}
}
