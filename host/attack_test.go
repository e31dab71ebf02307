package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/front/client"
)

// TestOneDecisionCounts decides about one call twice, and about another eight times at once.
// The binary always refuses the second decision; TestAttacks and
// TestOneDecisionOfAHundredCounts of package approval show what happens without that.
func TestOneDecisionCounts(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	call, id := h.begin(t, "probe_count", map[string]any{"note": "rejected"})
	h.answer(t, "reject", id, "--message", "no")
	if _, stderr, code := h.cli("approvals", "approve", id); code != 1 || !strings.Contains(stderr, "rejected by") {
		t.Errorf("a second decision exits with %d and says %q, want who was first", code, stderr)
	}
	if o := h.outcome(t, call); o.Status != client.Rejected || o.UserMessage != "no" {
		t.Errorf("the call = %s, want that it is rejected", asJSON(o))
	}

	call, id = h.begin(t, "probe_count", map[string]any{"note": "raced"})
	approver, answer := h.approver(t), client.Answer{}.Seen(h.open(t, 1)[0])
	var deciders sync.WaitGroup
	won := make(chan approval.Record, 8)
	for i := range cap(won) {
		deciders.Go(func() {
			decide := approver.Approve
			if i%2 == 1 {
				decide = approver.Reject
			}
			if r, err := decide(t.Context(), id, answer); err == nil {
				won <- r
			} else if !strings.Contains(err.Error(), " by ") && !strings.Contains(err.Error(), "used already") {
				t.Errorf("a decision that lost = %v, want what was decided", err)
			}
		})
	}
	deciders.Wait()
	if len(won) != 1 {
		t.Fatalf("%d of 8 decisions count, want 1", len(won))
	}
	first := <-won
	o := h.outcome(t, call)
	if ran := len(h.counted()) == 1; ran != (first.State == approval.Approved) || ran != (o.Status == client.Success) {
		t.Errorf("the decision %s counts, the call = %s, calls that ran: %v", first.State, asJSON(o), h.counted())
	}
}

// TestLateDecision decides after the question has expired, which takes ten seconds, the
// minimum in a configuration. The control decides in time. TestAttacks of package approval
// shows what a host without a clock would do.
func TestLateDecision(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting+`approvals { timeout = "10s" }`))
	call, id := h.begin(t, "probe_count", map[string]any{"note": "late"})
	if o := h.outcome(t, call); o.Status != client.Rejected || !strings.Contains(o.Reason, "no one approved") {
		t.Errorf("a call that nobody answers = %s", asJSON(o))
	}
	if _, stderr, code := h.cli("approvals", "approve", id); code != 1 || !strings.Contains(stderr, "expired") {
		t.Errorf("a late decision exits with %d and says %q, want that the time has passed", code, stderr)
	}
	if ran := h.counted(); len(ran) > 0 {
		t.Errorf("calls have run: %v", ran)
	}
	_, id = h.begin(t, "probe_count", map[string]any{"note": "late"}) // the control: in time
	h.answer(t, "approve", id)
	eventually(t, "the call has run", func() bool { return len(h.counted()) == 1 })
}

// TestNoArgumentApproves names approvals wherever a model can, and answers one question with
// the version that was shown for another. Each control removes one obstacle: the unknown
// property, the version of the other call, and the admin's distrust of a tool that believes
// such an argument.
func TestNoArgumentApproves(t *testing.T) {
	t.Parallel()
	distrusting := strings.Replace(counting, `"trust"`, `"ignore"`, 1)
	h := serve(t, writeConfig(t, listening+distrusting))
	_, a := h.begin(t, "probe_count", map[string]any{"note": "a"})
	_, b := h.begin(t, "probe_count", map[string]any{"note": "b"})
	for _, args := range []map[string]any{
		{"note": "a", "approved": true},
		{"note": "a", "approval_id": a},
		{"note": "a", "approval": map[string]any{"id": a, "state": "approved"}},
	} {
		if o := h.post(t, "probe_count", args); o.Error == nil || o.Error.Code != "INVALID_ARGUMENT" {
			t.Errorf("probe_count(%v) = %s, want that there is no such argument", args, asJSON(o))
		}
	}
	for _, tt := range []struct {
		more string
		want int
	}{
		{`, "approval_id": "` + a + `"`, 400},
		{`, "user": "root", "roles": ["approver"]`, 400},
		{``, 202}, // the control: without them the call waits
	} {
		body := `{"tool": "probe_count", "arguments": {"note": "a"}` + tt.more + `}`
		h.must(t, tt.want, "POST", "/v1/calls", h.token, body, "Prefer", "respond-async")
	}
	believing := map[string]any{"note": "c", "approved": true}
	h.begin(t, "probe_gullible", believing) // waits as well
	if ran := h.counted(); len(ran) > 0 {
		t.Errorf("calls have run: %v", ran)
	}
	trusting := serve(t, writeConfig(t, listening+counting))
	if o := trusting.post(t, "probe_gullible", believing); o.Status != client.Success || len(trusting.counted()) != 1 {
		t.Errorf("control: a tool that believes the argument = %s, where the admin trusts it", asJSON(o))
	}

	approver := h.approver(t)
	whole, err := approver.Approval(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := approver.Approve(t.Context(), b, client.Answer{}); err == nil || !strings.Contains(err.Error(), "lacks its arguments_hash") {
		t.Errorf("approving %s by a channel that does not say what was shown: %v", b, err)
	}
	if _, err := approver.Approve(t.Context(), b, client.Answer{}.Seen(whole.Record)); err == nil || !strings.Contains(err.Error(), "differs from what was shown") {
		t.Errorf("approving %s by somebody who was shown another call: %v", b, err)
	}
	if ran := h.counted(); len(ran) > 0 {
		t.Errorf("calls have run: %v", ran)
	}
	if whole, err = approver.Approval(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := approver.Approve(t.Context(), b, client.Answer{}.Seen(whole.Record)); err != nil {
		t.Errorf("control: what was shown: %v", err)
	}
	eventually(t, "control: the call that was shown has run", func() bool {
		ran := h.counted()
		return len(ran) == 1 && strings.HasSuffix(ran[0], ",b")
	})
}

// TestPluginsDecideNothing has a plugin take the approver's key from the state directory and
// use it: itself, through a child, and through an orphan in a session of its own. A confined
// plugin cannot read the key, and the control socket refuses it even with the key. The control
// is the same program, not started by the host.
func TestPluginsDecideNothing(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"off", "basic", "isolated", "strict", "auto"} {
		t.Run(isolation, func(t *testing.T) { pluginsDecideNothing(t, isolation) })
	}
}

func pluginsDecideNothing(t *testing.T, isolation string) {
	t.Helper()
	h := serve(t, writeConfig(t, listening+strings.Replace(counting, `"basic"`, strconv.Quote(isolation), 1)))
	_, id := h.begin(t, "probe_count", map[string]any{"note": "a"})
	for _, by := range []string{"itself", "child", "orphan"} {
		o := h.post(t, "probe_approve", map[string]any{"state_dir": h.stateDir, "id": id, "by": by})
		switch closed := o.Result != nil && strings.HasPrefix(o.Result.Content, "403 ") && strings.Contains(o.Result.Content, "closed to this process"); {
		case isolation == "off" && !closed:
			t.Errorf("approving by %s = %s, want that the socket is closed to it", by, asJSON(o))
		case isolation != "off" && o.Result != nil && !strings.Contains(o.Result.Content, "approver.key: "): // says why it cannot be opened
			t.Errorf("approving by %s = %s, want that it gets no key", by, asJSON(o))
		}
	}
	if records := h.open(t, 1); records[0].ID != id || len(h.counted()) > 0 {
		t.Fatalf("after the attacks %+v is open, and calls have run: %v", records, h.counted())
	}
	out, err := exec.Command(filepath.Join(bin, "plugins", "probe"), "approve", h.stateDir, id, "0").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "200 ") {
		t.Fatalf("control: the attack from outside = %s, %v", out, err)
	}
	eventually(t, "the call has run", func() bool { return len(h.counted()) == 1 })
}

// TestKeyOfTheSocketIsNoneOfTheNetwork sends the approver's key over the network, where the
// host cannot identify the sender. The control sends the same request to the same host after
// the configuration lists the key as a token.
func TestKeyOfTheSocketIsNoneOfTheNetwork(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	_, id := h.begin(t, "probe_count", map[string]any{"note": "a"})
	key := strings.TrimSpace(readFile(t, filepath.Join(h.stateDir, auth.ApproverKey)))
	h.must(t, 401, "POST", "/v1/approvals/"+id+"/approve", key, "{}")
	records := h.open(t, 1)
	if records[0].ID != id || len(h.counted()) > 0 {
		t.Errorf("%+v is open, want %s; calls that ran: %v", records, id, h.counted())
	}

	token := fmt.Sprintf("auth {\n token \"key\" {\n sha256 = %q\n user = %q\n roles = [\"approver\"]\n }\n}\n", auth.Digest(key), records[0].User)
	if err := os.WriteFile(h.config, []byte(readFile(t, h.config)+token), 0o600); err != nil {
		t.Fatal(err)
	}
	h.ok(t, "reload")
	h.must(t, 200, "POST", "/v1/approvals/"+id+"/approve", key, h.seen(t, id))
	eventually(t, "control: the call has run", func() bool { return len(h.counted()) == 1 })
}

// TestStaleApproval changes a file between the preview of a call and its approval: the host
// asks again and does not overwrite content that no person has seen. The control is a tool
// without a preview.
func TestStaleApproval(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+writing+counting))
	h.write(t, "a.txt", "old\n")
	call, id := h.begin(t, "write_file", map[string]any{"path": "a.txt", "content": "new\n"})
	h.write(t, "a.txt", "theirs\n")
	h.answer(t, "approve", id)
	again := h.open(t, 1)[0]
	if again.ID == id || again.Call != call || h.file("a.txt") != "theirs\n" {
		t.Fatalf("%+v is open, the file holds %q; want a new question about %s, and nothing written", again, h.file("a.txt"), call)
	}
	if shown := h.ok(t, "approvals", "show", again.ID); !strings.Contains(shown, "-theirs") {
		t.Errorf("the new question shows\n%s\nwant what is there now", shown)
	}
	h.answer(t, "approve", again.ID)
	if o := h.outcome(t, call); o.Status != client.Success || h.file("a.txt") != "new\n" {
		t.Errorf("the call = %s, and the file holds %q", asJSON(o), h.file("a.txt"))
	}

	call, _ = h.begin(t, "write_file", map[string]any{"path": "a.txt", "content": "newer\n"})
	for _, text := range []string{"1\n", "2\n", "3\n"} { // another process changes it first each time
		record := h.open(t, 1)[0]
		h.write(t, "a.txt", text)
		h.answer(t, "approve", record.ID)
		eventually(t, "the question is closed", func() bool {
			var whole approval.Record
			decode(t, h.ok(t, "approvals", "show", record.ID, "--json"), &whole)
			return whole.State.Closed()
		})
	}
	if o := h.outcome(t, call); o.Error == nil || o.Error.Code != "CONFLICT" || h.file("a.txt") != "3\n" {
		t.Errorf("a call whose file changes each time = %s, and the file holds %q", asJSON(o), h.file("a.txt"))
	}

	h.write(t, "b.txt", "old\n")
	call, id = h.begin(t, "probe_overwrite", map[string]any{"path": "b.txt", "content": "new\n"})
	h.write(t, "b.txt", "theirs\n")
	h.answer(t, "approve", id)
	if o := h.outcome(t, call); o.Status != client.Success || h.file("b.txt") != "new\n" {
		t.Errorf("control: without a preview the call = %s, and the file holds %q", asJSON(o), h.file("b.txt"))
	}
}
