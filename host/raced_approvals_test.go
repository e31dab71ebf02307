package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// askAndDecide has two clients make calls over REST that need approval, and alternately
// approves and rejects them.
func (c *traffic) askAndDecide(t *testing.T, h *host) (approved, rejected *occurrence) {
	t.Helper()
	approved, rejected = c.occurrence("a call is approved and runs"), c.occurrence("a call is rejected")
	approver := h.approver(t)
	var calls atomic.Int64
	for range 2 {
		c.until(func() {
			n := calls.Add(1)
			decide, code, end := approver.Approve, "", approved
			if n%2 == 0 {
				decide, code, end = approver.Reject, "REJECTED", rejected
			}
			id, err := beginCount(h, fmt.Sprintf("n%d", n))
			if err != nil {
				t.Error(err)
				return
			}
			r, err := waitsFor(t, approver, id)
			if err == nil {
				_, err = decide(t.Context(), r.ID, client.Answer{}.Seen(r))
			}
			if err != nil {
				t.Errorf("decide about call %s: %v", id, err)
				return
			}
			_, text, err := h.send("GET", "/v1/calls/"+id+"?wait=60s", h.token, "")
			var o client.Outcome
			if err == nil {
				err = json.Unmarshal([]byte(text), &o)
			}
			if failure := o.Failure(); err != nil || (failure == nil) != (code == "") || o.Error != nil && o.Error.Code != code {
				t.Errorf("call %d ends with %s, %v; want error %q", n, text, err, code)
				return
			}
			end.happened()
		})
	}
	return approved, rejected
}

// beginCount begins a call that needs approval and returns its id.
func beginCount(h *host, note string) (id string, err error) {
	status, text, err := h.send("POST", "/v1/calls", h.token,
		asJSON(map[string]any{"tool": "probe_count", "arguments": map[string]any{"note": note}}), "Prefer", "respond-async")
	var o client.Outcome
	if err == nil {
		err = json.Unmarshal([]byte(text), &o)
	}
	if err != nil || status != http.StatusAccepted {
		return "", fmt.Errorf("a call that must be approved = %d %s, %w", status, text, err)
	}
	return o.ToolCallID, nil
}

// waitsFor returns the approval that a call waits for.
func waitsFor(t *testing.T, approver *client.Client, call string) (approval.Record, error) {
	t.Helper()
	for {
		open, err := approver.Approvals(t.Context(), client.ApprovalFilter{States: []approval.State{approval.Open}, Wait: patience})
		if err != nil {
			return approval.Record{}, err
		}
		if i := slices.IndexFunc(open, func(r httpapi.Approval) bool { return r.Call == call }); i >= 0 {
			return open[i].Record, nil
		}
	}
}
