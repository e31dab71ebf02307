package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
)

// TestThousandOpenApprovals has fifty users ask as many questions as they may: each user's
// next question is refused, and the thousand open ones can be listed, decided, and found again
// after a kill.
func TestThousandOpenApprovals(t *testing.T) {
	t.Parallel()
	const users, each = 50, 20
	var tokens []string
	blocks := []string{"auth {"}
	for i := range users {
		secret, digest := auth.NewToken()
		tokens = append(tokens, secret)
		blocks = append(blocks, fmt.Sprintf("token \"t%d\" {\n sha256 = %q\n user = \"u%d\"\n roles = [\"agent\"]\n}", i, digest, i))
	}
	secret, digest := auth.NewToken()
	blocks = append(blocks, fmt.Sprintf("token \"lead\" {\n sha256 = %q\n user = \"lead\"\n roles = [\"approver\"]\n approves = [\"u7\"]\n}\n}", digest))
	h := serve(t, writeConfig(t, listening+counting+strings.Join(blocks, "\n")))

	send := func(user int, args json.RawMessage, prefer string) (int, string, error) {
		return h.send("POST", "/v1/calls", tokens[user], asJSON(map[string]any{"tool": "probe_count", "arguments": args}), "Prefer", prefer)
	}
	call := func(user int, args json.RawMessage) client.Outcome {
		status, text, err := send(user, args, "wait=1")
		return outcomeOf(t, status, text, err)
	}
	oneMore := json.RawMessage(`{"note": "one more"}`)
	var asking sync.WaitGroup
	for i := range users {
		asking.Go(func() {
			for n := range each {
				args := fmt.Appendf(nil, `{"note": "%d-%d"}`, i, n)
				if status, text, err := send(i, args, "respond-async"); err != nil || status != 202 {
					t.Errorf("a call of u%d = %d %s, %v", i, status, text, err)
				}
			}
		})
	}
	asking.Wait()
	approver := h.approver(t)
	all := client.ApprovalFilter{States: []approval.State{approval.Open}, Limit: 1000}
	eventually(t, "a thousand questions are open", func() bool {
		records, err := approver.Approvals(t.Context(), all)
		return err == nil && len(records) == users*each
	})
	for _, user := range []int{0, users - 1} {
		if o := call(user, oneMore); o.Error == nil || o.Error.Code != "RATE_LIMITED" {
			t.Errorf("question %d of u%d = %s, want that there are too many", each+1, user, asJSON(o))
		}
	}

	h.kill()
	h.restart(t)
	if records, err := h.approver(t).Approvals(t.Context(), all); err != nil || len(records) != users*each {
		t.Fatalf("after a kill %d questions are open, %v; want %d", len(records), err, users*each)
	}
	var mine []approval.Record
	decode(t, h.must(t, 200, "GET", "/v1/approvals?limit=1000", secret, ""), &mine)
	if len(mine) != each {
		t.Fatalf("an approver of u7 sees %d questions, want %d", len(mine), each)
	}
	for _, r := range mine {
		if r.User != "u7" {
			t.Fatalf("an approver of u7 sees %+v", r)
		}
	}
	var whole approval.Record
	decode(t, h.must(t, 200, "GET", "/v1/approvals/"+mine[0].ID, secret, ""), &whole)
	h.must(t, 200, "POST", "/v1/approvals/"+whole.ID+"/approve", secret, h.seen(t, whole.ID))
	if o := call(7, whole.Arguments); o.Status != client.Success {
		t.Errorf("the approved call, sent again = %s", asJSON(o))
	}
	if ran := h.counted(); len(ran) != 1 || !strings.Contains(ran[0], ","+whole.ID+",7-") {
		t.Errorf("calls have run: %v", ran)
	}
	if o := call(7, oneMore); o.Status != client.Pending || o.ApprovalID == "" {
		t.Errorf("control: a question in the place of a decided one = %s, want that it is asked", asJSON(o))
	}
}
