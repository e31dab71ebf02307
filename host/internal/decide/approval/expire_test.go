package approval_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/sdk/tool"
)

// changes collects what Changed is called with.
type changes struct {
	mu  sync.Mutex
	all []approval.Record
}

func (c *changes) add(r approval.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, r)
}

// states returns the states that a record went through.
func (c *changes) states(id string) []approval.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	var states []approval.State
	for _, r := range c.all {
		if r.ID == id {
			states = append(states, r.State)
		}
	}
	return states
}

// wall is a wall clock that tests can set, next to the clock of the bubble.
type wall struct {
	mu     sync.Mutex
	offset time.Duration
}

func (w *wall) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.offset).Round(0)
}

func (w *wall) set(offset time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offset = offset
}

func TestUnansweredExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen changes
		r := open(t, t.TempDir(), approval.Options{Timeout: time.Minute, Changed: seen.add})
		asked := time.Now()
		record := r.ask(t, question(`{}`))
		if n := r.service.Pending(); n != 1 {
			t.Errorf("Pending = %d with a question, want 1", n)
		}
		got, err := r.service.Wait(t.Context(), record.ID)
		if err != nil || got.State != approval.Expired || got.Via != "timeout" || got.DecidedBy != "" || got.Decided.IsZero() {
			t.Errorf("Wait = %+v, %v; want it expired by the timeout", got, err)
		}
		if n := r.service.Pending(); n != 0 {
			t.Errorf("Pending = %d after it expired, want 0", n)
		}
		if waited := time.Since(asked); waited < time.Minute || waited > time.Minute+time.Second {
			t.Errorf("it expired after %v, want a minute", waited)
		}
		if diff := cmp.Diff([]approval.State{approval.Open, approval.Expired}, seen.states(record.ID)); diff != "" {
			t.Errorf("Changed saw (-want +got):\n%s", diff)
		}
		_, err = r.service.Decide(t.Context(), r.seeing(t, approval.Decision{ID: record.ID, By: approver("ada"), Approve: true}))
		if code := tool.AsError(err).Code; code != tool.Conflict {
			t.Errorf("Decide after that = %v, want %s", err, tool.Conflict)
		}
	})
}

func TestApprovedButNotSpentExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen changes
		r := open(t, t.TempDir(), approval.Options{Timeout: time.Minute, Changed: seen.add})
		q := question(`{}`)
		record := r.ask(t, q)
		r.approve(t, record.ID)
		wait(2 * time.Minute)
		synctest.Wait()
		if err := r.service.Spend(t.Context(), record.ID, "tc_1", q.Binding()); tool.AsError(err).Code != tool.Rejected {
			t.Errorf("Spend = %v, want %s", err, tool.Rejected)
		}
		got, err := r.service.Get(t.Context(), record.ID)
		if err != nil || got.State != approval.Expired || got.DecidedBy != "ada" || got.Via != "cli" {
			t.Errorf("Get = %+v, %v; want it expired, after ada's approval", got, err)
		}
		if diff := cmp.Diff([]approval.State{approval.Open, approval.Approved, approval.Expired}, seen.states(record.ID)); diff != "" {
			t.Errorf("Changed saw (-want +got):\n%s", diff)
		}
	})
}

// An approval is never valid for longer than its timeout, by either clock.
func TestClockThatIsSet(t *testing.T) {
	for _, tt := range []struct {
		name  string
		jump  time.Duration // of the wall clock, after the question
		sleep time.Duration
		want  approval.State
	}{
		{"not set, in time", 0, 50 * time.Second, approval.Approved},
		{"set back an hour, in time", -time.Hour, 50 * time.Second, approval.Approved},
		{"set back an hour, late", -time.Hour, 70 * time.Second, approval.Expired},
		{"set forward, in time by the other clock", time.Hour, time.Second, approval.Expired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock wall
				r := open(t, t.TempDir(), approval.Options{Timeout: time.Minute, Now: clock.now})
				q := question(`{"n":1}`)
				record, approved := r.ask(t, question(`{}`)), r.ask(t, q)
				r.approve(t, approved.ID)
				synctest.Wait() // the clock has looked, and sleeps
				clock.set(tt.jump)
				wait(tt.sleep)
				got, err := r.service.Decide(t.Context(), r.seeing(t, approval.Decision{ID: record.ID, By: approver("ada"), Approve: true}))
				if got.State != tt.want || (err == nil) != (tt.want == approval.Approved) {
					t.Errorf("Decide = %q, %v; want %q", got.State, err, tt.want)
				}
				err = r.service.Spend(t.Context(), approved.ID, "tc_1", q.Binding())
				if (err == nil) != (tt.want == approval.Approved) {
					t.Errorf("Spend = %v, with the time %q", err, tt.want)
				}
			})
		})
	}
}

// The wall clock jumps while there are no requests. Waiters notice within a bounded time.
func TestWallClockJumpsUnnoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock wall
		r := open(t, t.TempDir(), approval.Options{Timeout: time.Hour, Now: clock.now})
		record := r.ask(t, question(`{}`))
		synctest.Wait() // the clock has looked, and sleeps
		asked := time.Now()
		clock.set(2 * time.Hour)
		got, err := r.service.Wait(t.Context(), record.ID)
		if err != nil || got.State != approval.Expired {
			t.Errorf("Wait = %q, %v; want %q", got.State, err, approval.Expired)
		}
		if waited := time.Since(asked); waited > time.Minute {
			t.Errorf("it took %v to notice, want less than a minute", waited)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, t.TempDir(), approval.Options{})
		record := r.ask(t, question(`{}`))
		patience := errors.New("the client has no patience")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 45*time.Second, patience)
		defer cancel()
		if _, err := r.service.Wait(ctx, record.ID); !errors.Is(err, patience) {
			t.Errorf("Wait = %v, want the cause of its context's end", err)
		}
		if got, err := r.service.Get(t.Context(), record.ID); err != nil || got.State != approval.Open {
			t.Errorf("Get = %q, %v; want it open still", got.State, err)
		}
	})
}

func TestCloseWakesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, t.TempDir(), approval.Options{})
		record := r.ask(t, question(`{}`))
		done := make(chan error, 1)
		go func() {
			_, err := r.service.Wait(context.WithoutCancel(t.Context()), record.ID)
			done <- err
		}()
		synctest.Wait()
		if err := r.service.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; tool.AsError(err).Code != tool.Unavailable {
			t.Errorf("Wait = %v, want %s", err, tool.Unavailable)
		}
	})
}

func TestClosedRecordsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, t.TempDir(), approval.Options{Timeout: 48 * time.Hour, MaxOpen: 1000})
		kept := r.ask(t, question(`{"n":-1}`))
		for range 250 {
			record := r.ask(t, question(`{}`))
			if err := r.service.Cancel(t.Context(), record.ID); err != nil {
				t.Fatal(err)
			}
		}
		list := func() int {
			all, err := r.service.List(t.Context(), approval.Filter{By: approver("ada"), Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		wait(23 * time.Hour)
		synctest.Wait()
		if n := list(); n != 251 {
			t.Errorf("%d records after 23 hours, want 251", n)
		}
		wait(3 * time.Hour)
		synctest.Wait()
		if n := list(); n != 1 {
			t.Errorf("%d records after 26 hours, want the one that is open", n)
		}
		if got, err := r.service.Get(t.Context(), kept.ID); err != nil || got.State != approval.Open {
			t.Errorf("Get of the open one = %q, %v", got.State, err)
		}
	})
}
