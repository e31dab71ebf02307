package approval_test

import (
	"database/sql"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The clauses of the product's statements that guard something.
const (
	onlyOpen     = " AND state = 'open'"
	onlyApproved = " AND state = 'approved'"
	onlyThisCall = " AND binding = ?"
)

var updates = regexp.MustCompile("`UPDATE approvals SET [^`]*`")

// without returns the statement of the product that has a clause, and the same
// without it. It reads both from the product's source, so that a control is
// what the product would be, and is none any more if the clause is gone.
func without(tb testing.TB, file, clause string) (with, unguarded string) {
	tb.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	for _, statement := range updates.FindAllString(string(source), -1) {
		if strings.Count(statement, clause) == 1 && with == "" {
			with = strings.Trim(statement, "`")
		}
	}
	if with == "" {
		tb.Fatalf("no statement in %s says %q", file, clause)
	}
	return with, strings.Replace(with, clause, "", 1)
}

// exec runs a statement past every guard of the package.
func (r *rig) exec(tb testing.TB, query string, args ...any) int64 {
	tb.Helper()
	var n int64
	err := r.store.Do(tb.Context(), func(tx *sql.Tx) error {
		result, err := tx.ExecContext(tb.Context(), query, args...)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	if err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return n
}

// decideAnyState writes a decision like the product, but for any state of the record. The
// product's own statement must refuse it first.
func (r *rig) decideAnyState(tb testing.TB, dec approval.Decision) {
	tb.Helper()
	state := approval.Rejected
	if dec.Approve {
		state = approval.Approved
	}
	now := r.clock.now().UnixMilli()
	args := []any{state, dec.By.User, dec.Via, dec.Message, now, 0, 0, "", dec.ID}
	with, unguarded := without(tb, "decide.go", onlyOpen)
	if r.exec(tb, with, args...) != 0 || r.exec(tb, unguarded, args...) != 1 {
		tb.Errorf("the clause %q makes no difference", onlyOpen)
	}
}

// spendAnyState spends a record like the product, but in any state. The product's own statement
// must refuse it first.
func (r *rig) spendAnyState(tb testing.TB, id, binding string) {
	tb.Helper()
	args := []any{"tc_2", r.clock.now().UnixMilli(), id, binding}
	with, unguarded := without(tb, "decide.go", onlyApproved)
	if r.exec(tb, with, args...) != 0 || r.exec(tb, unguarded, args...) != 1 {
		tb.Errorf("the clause %q makes no difference", onlyApproved)
	}
}

// spendAnyCall spends a record like the product, but for any call. The product's own statement
// must refuse that call first.
func (r *rig) spendAnyCall(tb testing.TB, id, binding string) {
	tb.Helper()
	args := []any{"tc_2", r.clock.now().UnixMilli(), id, binding}
	with, unguarded := without(tb, "decide.go", onlyThisCall)
	if r.exec(tb, with, args...) != 0 || r.exec(tb, unguarded, args[:3]...) != 1 {
		tb.Errorf("the clause %q makes no difference", onlyThisCall)
	}
}

// spendAnyTime spends a record with the product's whole statement, which does
// not look at the time: the check before it does.
func (r *rig) spendAnyTime(tb testing.TB, id, binding string) {
	tb.Helper()
	with, _ := without(tb, "decide.go", onlyApproved)
	r.exec(tb, with, "tc_2", r.clock.now().UnixMilli(), id, binding)
}

// attack tries to do damage, against the guard or in its absence, and reports
// whether the damage was done.
type attack func(r *rig, guard bool) bool

// decided is a decision that a check refuses with a code. In the control, blind
// keeps the check from seeing why.
func decided(want tool.Code, attempt func(r *rig) approval.Decision, blind func(*approval.Sight)) attack {
	return func(r *rig, guard bool) bool {
		dec := r.seeing(r.tb, attempt(r))
		if guard {
			if got := r.decide(r.tb, dec); got != want {
				r.tb.Errorf("Decide = %q, want %s", got, want)
			}
		} else {
			if _, err := r.service.DecideBlind(r.tb.Context(), dec, func(*approval.Sight) {}); code(err) != want {
				r.tb.Errorf("DecideBlind that sees all = %v, want %s as of Decide", err, want)
			}
			if _, err := r.service.DecideBlind(r.tb.Context(), dec, blind); err != nil {
				r.tb.Errorf("DecideBlind = %v", err)
			}
		}
		if dec.Grant != nil {
			_, covered := r.covering("ada", "p", "put")
			return covered
		}
		return r.state(r.tb, dec.ID) == approval.Approved
	}
}

// decidedAgain is a decision about a record that has already ended. In the control the decision
// is written in any state.
func decidedAgain(before func(r *rig, id string), approve bool) attack {
	return func(r *rig, guard bool) bool {
		record := r.ask(r.tb, question(`{}`))
		before(r, record.ID)
		was := r.state(r.tb, record.ID)
		dec := approval.Decision{ID: record.ID, By: approver("ada"), Approve: approve, Message: "second"}
		if guard {
			got, err := r.service.Decide(r.tb.Context(), r.seeing(r.tb, dec))
			if code(err) != tool.Conflict || got.State != was || !strings.Contains(err.Error(), string(was)) {
				r.tb.Errorf("Decide = %+v, %v; want that it was %s before", got, err, was)
			}
		} else {
			r.decideAnyState(r.tb, dec)
		}
		return r.state(r.tb, record.ID) != was
	}
}

// spent is the use of a record that is not approved, or not any more. In the
// control its state does not matter.
func spent(want tool.Code, before func(r *rig, id, binding string)) attack {
	return func(r *rig, guard bool) bool {
		q := question(`{}`)
		record := r.ask(r.tb, q)
		before(r, record.ID, q.Binding())
		if guard {
			if err := r.service.Spend(r.tb.Context(), record.ID, "tc_2", q.Binding()); code(err) != want {
				r.tb.Errorf("Spend = %v, want %s", err, want)
			}
		} else {
			r.spendAnyState(r.tb, record.ID, q.Binding())
		}
		got, err := r.service.Get(r.tb.Context(), record.ID)
		return err == nil && got.SpentBy == "tc_2"
	}
}

// spentByAnother uses an approval for a call that differs from the approved one in one thing. In
// the control calls are compared without that thing, which blank removes.
func spentByAnother(change, blank func(*approval.Question)) attack {
	return func(r *rig, guard bool) bool {
		q := question(`{"path":"a.txt"}`)
		q.Preview = &tool.Preview{Summary: "Writes a.txt", Digest: []byte("1")}
		q.Sensitive = []string{"/ws/.env"}
		record := r.ask(r.tb, q)
		r.approve(r.tb, record.ID)
		other := q
		change(&other)
		if guard {
			if err := r.service.Spend(r.tb.Context(), record.ID, "tc_2", other.Binding()); code(err) != tool.PermissionDenied {
				r.tb.Errorf("Spend = %v, want %s", err, tool.PermissionDenied)
			}
		} else {
			asked, about := q, other
			blank(&asked)
			blank(&about)
			if asked.Binding() == about.Binding() {
				r.spendAnyCall(r.tb, record.ID, other.Binding())
			}
		}
		return r.state(r.tb, record.ID) == approval.Spent
	}
}
