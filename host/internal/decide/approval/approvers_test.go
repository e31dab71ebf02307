package approval_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/sdk/tool"
)

// forTwo returns a question that two people must approve.
func forTwo() approval.Question {
	q := question(`{"path":"a.txt"}`)
	q.Approvers = 2
	return q
}

// of returns an approver of ada's calls, with a token.
func of(user, token string) auth.Caller {
	return auth.Caller{User: user, Token: token, Client: "cli", Roles: auth.Approver, Approves: []string{"ada"}}
}

// TestTwoApprovers: the call runs after two different people have approved it, also over a restart
// between them, and not before.
func TestTwoApprovers(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	q := forTwo()
	asked := r.ask(t, q)
	if asked.Standing || asked.NoGrant == "" {
		t.Errorf("a record for two people: Standing = %t, NoGrant = %q", asked.Standing, asked.NoGrant)
	}
	first, err := r.service.Decide(t.Context(), r.seeing(t, approval.Decision{ID: asked.ID, By: of("lea", "one"), Approve: true, Via: "cli"}))
	if err != nil || first.State != approval.Open || first.Progress() != "1 of 2, by lea" {
		t.Fatalf("the first approval = %+v, %v, want it open with 1 of 2, by lea", first, err)
	}
	if err := r.service.Spend(t.Context(), asked.ID, "tc_1", q.Binding()); code(err) != tool.PendingApproval {
		t.Errorf("Spend after one of two approvals = %v, want pending", err)
	}
	r.restart(t, approval.Options{})
	for _, token := range []string{"one", "two"} {
		if got := r.decide(t, approval.Decision{ID: asked.ID, By: of("lea", token), Approve: true}); got != tool.PermissionDenied {
			t.Errorf("another approval by lea with token %s = %q, want it refused", token, got)
		}
	}
	second, err := r.service.Decide(t.Context(), r.seeing(t, approval.Decision{ID: asked.ID, By: approver("ada"), Approve: true, Via: "rest"}))
	if err != nil || second.State != approval.Approved || second.Progress() != "2 of 2, by lea and ada" {
		t.Fatalf("the second approval = %+v, %v", second, err)
	}
	if err := r.service.Spend(t.Context(), asked.ID, "tc_1", q.Binding()); err != nil {
		t.Errorf("Spend = %v", err)
	}
	spent, err := r.service.Get(t.Context(), asked.ID)
	if err != nil || spent.Progress() != "2 of 2, by lea and ada" {
		t.Errorf("the record after the call = %+v, %v", spent, err)
	}
}

// TestOneRejectionOfTwo: one rejection counts for all, before and after an approval, and one approval
// does not outlive the time.
func TestOneRejectionOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, t.TempDir(), approval.Options{Timeout: time.Minute})
		asked := r.ask(t, forTwo())
		r.decide(t, approval.Decision{ID: asked.ID, By: of("lea", ""), Approve: true})
		r.decide(t, approval.Decision{ID: asked.ID, By: of("lea", ""), Message: "I was wrong"})
		record, err := r.service.Get(t.Context(), asked.ID)
		if err != nil || record.State != approval.Rejected || record.DecidedBy != "lea" || !record.ApprovedBy("lea") {
			t.Errorf("the record = %+v, %v, want it rejected by lea, who approved it before", record, err)
		}
		late := r.ask(t, forTwo())
		r.decide(t, approval.Decision{ID: late.ID, By: of("lea", ""), Approve: true})
		wait(time.Minute)
		synctest.Wait()
		if got := r.state(t, late.ID); got != approval.Expired {
			t.Errorf("the state after the timeout is %s, want expired", got)
		}
	})
}

// TestApprovalOfOneIsNotForTwo: an approval from before two people were required lets no call run that
// two must approve, and the other way round.
func TestApprovalOfOneIsNotForTwo(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	one, two := question(`{"path":"a.txt"}`), forTwo()
	asked := r.ask(t, one)
	r.approve(t, asked.ID)
	r.service.Release(asked.ID)
	if again := r.ask(t, two); again.ID == asked.ID {
		t.Error("a call for two people got the record that one approved")
	}
	if err := r.service.Spend(t.Context(), asked.ID, "tc_1", two.Binding()); code(err) != tool.PermissionDenied {
		t.Errorf("Spend of an approval by one for a call that needs two = %v", err)
	}
}

// TestApproversAtOnce: of many decisions at once, by one user with many tokens and by one other, exactly
// two count.
func TestApproversAtOnce(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	asked := r.ask(t, forTwo())
	var deciding sync.WaitGroup
	for i := range 20 {
		deciding.Go(func() {
			r.decide(t, approval.Decision{ID: asked.ID, By: of("lea", string(rune('a'+i))), Approve: true})
		})
	}
	deciding.Wait()
	if record, err := r.service.Get(t.Context(), asked.ID); err != nil || record.State != approval.Open || len(record.Assents) != 1 {
		t.Fatalf("after 20 approvals by one user: %+v, %v, want one assent", record, err)
	}
	for range 5 {
		deciding.Go(func() { r.decide(t, approval.Decision{ID: asked.ID, By: of("eve", ""), Approve: true}) })
		deciding.Go(func() { r.decide(t, approval.Decision{ID: asked.ID, By: of("kim", ""), Approve: true}) })
	}
	deciding.Wait()
	record, err := r.service.Get(t.Context(), asked.ID)
	if err != nil || record.State != approval.Approved || len(record.Assents) != 2 || record.Assents[0].By != "lea" {
		t.Errorf("after approvals by two more: %+v, %v, want it approved by two", record, err)
	}
}
