package approval_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Hundreds of operations wait, a thousand with `make soak`. Each gets its own answer and no other.
func TestThousandOpen(t *testing.T) {
	var seen changes
	ids := make([]string, soak.Rounds(250, 1000))
	r := open(t, t.TempDir(), approval.Options{MaxOpen: len(ids), Changed: seen.add})
	var ops, answers sync.WaitGroup
	for n := range ids {
		q := question(fmt.Sprintf(`{"n":%d}`, n))
		ids[n] = r.ask(t, q).ID
		ops.Go(func() {
			got, err := r.service.Wait(t.Context(), ids[n])
			switch {
			case err != nil:
				t.Errorf("Wait = %v", err)
			case n%2 == 0 && got.State != approval.Rejected, n%2 == 1 && got.State != approval.Approved, got.Message != fmt.Sprint(n):
				t.Errorf("op %d got %s with message %q", n, got.State, got.Message)
			case n%2 == 1:
				if err := r.service.Spend(t.Context(), ids[n], fmt.Sprint("tc_", n), q.Binding()); err != nil {
					t.Errorf("Spend = %v", err)
				}
			}
		})
	}
	if _, err := r.service.Ask(t.Context(), question(`{}`)); code(err) != tool.RateLimited {
		t.Errorf("Ask number %d = %v, want %s", len(ids)+1, err, tool.RateLimited)
	}
	for part := range 10 {
		answers.Go(func() {
			for n := part; n < len(ids); n += 10 {
				dec := approval.Decision{ID: ids[n], By: approver("ada"), Approve: n%2 == 1, Message: fmt.Sprint(n)}
				if _, err := r.service.Decide(t.Context(), r.seeing(t, dec)); err != nil {
					t.Errorf("Decide = %v", err)
				}
			}
		})
	}
	answers.Wait()
	ops.Wait()
	for n, id := range ids {
		want := []approval.State{approval.Open, approval.Rejected}
		if n%2 == 1 {
			want = []approval.State{approval.Open, approval.Approved, approval.Spent}
		}
		if got := seen.states(id); !slices.Equal(got, want) {
			t.Fatalf("Changed saw %v for op %d, want %v", got, n, want)
		}
	}
}

func TestManyExpireAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, t.TempDir(), approval.Options{MaxOpen: 350, Timeout: time.Minute})
		var ops sync.WaitGroup
		for n := range 350 {
			id := r.ask(t, question(fmt.Sprintf(`{"n":%d}`, n))).ID
			ops.Go(func() {
				if got, err := r.service.Wait(t.Context(), id); err != nil || got.State != approval.Expired {
					t.Errorf("Wait = %s, %v; want it expired", got.State, err)
				}
			})
		}
		begun := time.Now()
		ops.Wait()
		if took := time.Since(begun); took > time.Minute+time.Second {
			t.Errorf("it took %v until all had expired, want a minute", took)
		}
	})
}

// A write that was reported as failed has reached the disk: the disk is right.
func TestDiskIsRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, t.TempDir(), approval.Options{Timeout: time.Minute})
		q := question(`{}`)
		record := r.ask(t, q)
		r.exec(t, "UPDATE approvals SET state = 'rejected', decided_by = 'bob', via = 'rest', closed = ? WHERE id = ?", time.Now().UnixMilli(), record.ID) // not long ago: old records are removed
		got, err := r.service.Decide(t.Context(), r.seeing(t, approval.Decision{ID: record.ID, By: approver("ada"), Approve: true}))
		if code(err) != tool.Conflict || got.State != approval.Rejected || got.DecidedBy != "bob" {
			t.Errorf("Decide = %+v, %v; want bob's rejection", got, err)
		}
		if got, err := r.service.Wait(t.Context(), record.ID); err != nil || got.State != approval.Rejected {
			t.Errorf("Wait = %s, %v; want it rejected", got.State, err)
		}
		if again := r.ask(t, q); again.ID == record.ID {
			t.Error("Ask gave the closed record to a call")
		}
	})
}
