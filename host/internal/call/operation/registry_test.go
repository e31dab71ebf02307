package operation_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/sdk/tool"
)

func callOf(id, user string) operation.Call {
	return operation.Call{ID: id, Tool: "add", Caller: auth.Caller{User: user, Client: "c"}, Started: time.Now()}
}

// untilEnd executes a call until leave is closed or the operation is canceled.
func untilEnd(leave <-chan struct{}) func(context.Context, *operation.Operation) (operation.Outcome, *operation.Operation) {
	return func(ctx context.Context, o *operation.Operation) (operation.Outcome, *operation.Operation) {
		select {
		case <-leave:
			return operation.Outcome{ID: o.ID(), Result: tool.TextResult("done")}, nil
		case <-ctx.Done():
			return operation.Outcome{ID: o.ID(), Result: tool.ErrorResult(operation.Cause(ctx))}, nil
		}
	}
}

// TestDrain drains a registry with one operation that has begun and one that has not,
// and starts a third.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := operation.NewRegistry(time.Minute)
		leave := make(chan struct{})
		begun := r.Start(t.Context(), callOf("tc_1", "ann"), untilEnd(leave))
		waits := r.Start(t.Context(), callOf("tc_2", "ann"), untilEnd(leave))
		if err := begun.Begin(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		drained := make(chan struct{})
		go func() { r.Drain(t.Context()); close(drained) }() // ends with begun
		synctest.Wait()
		later := r.Start(t.Context(), callOf("tc_3", "ann"), untilEnd(leave))
		for _, o := range []*operation.Operation{waits, later} {
			if got := o.WaitOrCancel(t.Context()).Result.Error; !errors.Is(got, operation.ErrStopping) {
				t.Errorf("%s = %v, want %v", o.ID(), got, operation.ErrStopping)
			}
		}
		select {
		case <-drained:
			t.Error("Drain returned before the call that had begun")
		default:
		}
		close(leave)
		<-drained
		if got := begun.WaitOrCancel(t.Context()).Result; got.Error != nil || got.Text() != "done" {
			t.Errorf("the call that had begun = %+v, want its result", got)
		}
		for _, o := range []*operation.Operation{begun, waits, later} {
			o.Release()
		}
		r.Close()
	})
}

// TestJoin makes a call again whose caller was told to: it joins the first operation. The
// control is a call of another client.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := operation.NewRegistry(time.Minute)
		leave := make(chan struct{})
		join := func(ctx context.Context, o *operation.Operation) (operation.Outcome, *operation.Operation) {
			if earlier := r.FindRetried(o, "add", "hash"); earlier != nil {
				return operation.Outcome{}, earlier
			}
			return untilEnd(leave)(ctx, o)
		}
		first := r.Start(t.Context(), callOf("tc_1", "ann"), join)
		synctest.Wait()
		first.KeepForRetry()
		first.Release()
		again := r.Start(t.Context(), callOf("tc_2", "ann"), join)
		other := callOf("tc_3", "ann")
		other.Caller.Client = "d"
		control := r.Start(t.Context(), other, join)
		synctest.Wait()
		if o, ok := r.Find("tc_2", auth.Caller{User: "ann"}); !ok || o.ID() != "tc_1" {
			t.Errorf("Find(tc_2) = %v, %v, want tc_1", o, ok)
		} else {
			o.Release()
		}
		close(leave)
		for o, want := range map[*operation.Operation]string{again: "tc_1", control: "tc_3"} {
			if got := o.WaitOrCancel(t.Context()).ID; got != want {
				t.Errorf("the outcome of %s is that of %s, want %s", o.ID(), got, want)
			}
			o.Release()
		}
		if n := r.Count("ann"); n != 0 {
			t.Errorf("Count = %d after all results were collected, want 0", n)
		}
		r.Close()
	})
}

// TestWaitOrCancelSharesTheCall ends the context of one of two holders, and then of the
// last one.
func TestWaitOrCancelSharesTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := operation.NewRegistry(time.Minute)
		defer r.Close()
		first := r.Start(t.Context(), callOf("tc_1", "ann"), untilEnd(nil))
		second, ok := r.Find("tc_1", auth.Caller{User: "ann"})
		if !ok {
			t.Fatal("there is no operation tc_1")
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if got := first.WaitOrCancel(ended).Result.Error; got == nil || got.Code != tool.Canceled {
			t.Errorf("WaitOrCancel = %v, want %s", got, tool.Canceled)
		}
		first.Release()
		if got := second.Info().State; got != operation.Running {
			t.Errorf("the other holder's operation is %s, want %s", got, operation.Running)
		}
		if got := second.WaitOrCancel(ended).Result.Error; got == nil || got.Code != tool.Canceled {
			t.Errorf("WaitOrCancel of the last holder = %v, want %s", got, tool.Canceled)
		}
		second.Release()
	})
}
