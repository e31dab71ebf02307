package pipeline_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/internal/soak"
	"github.com/toolhost/toolhost/sdk/tool"
)

// halt stops calls as the admin root.
func (h *host) halt(t *testing.T, scope killswitch.Scope) pipeline.Stopped {
	t.Helper()
	done, err := h.Stop(t.Context(), pipeline.StopRequest{Scope: scope, Reason: "it deletes too much", By: auth.Caller{User: "root"}, Via: "rest"})
	if err != nil || len(done.Problems) > 0 {
		t.Fatalf("Stop(%v) = %+v, %v", scope, done, err)
	}
	return done
}

// resume ends a stop.
func (h *host) resume(t *testing.T, id string) {
	t.Helper()
	if _, err := h.Resume(t.Context(), id, auth.Caller{User: "root"}, "rest"); err != nil {
		t.Fatalf("Resume(%s) = %v", id, err)
	}
}

// TestStopRace stops calls while others begin: after the stop has been answered, the plugin receives
// none and works on none. A stop of another user is the control: calls go on.
func TestStopRace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		scope killswitch.Scope
		stops bool
	}{
		{"all", killswitch.Scope{}, true},
		{"the user", killswitch.Scope{User: "ann"}, true},
		{"the plugin", killswitch.Scope{Plugin: "test"}, true},
		{"both", killswitch.Scope{User: "ann", Plugin: "test"}, true},
		{"another user", killswitch.Scope{User: "bob"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var answered atomic.Bool
			var hangs atomic.Value // of chan struct{}: closed when calls need not hang any more
			var late, inside atomic.Int64
			arrived := make(chan struct{}, 1)
			spec := addSpec()
			spec.HasPreview = false
			h := newHost(t, pipeline.Options{
				Policy: rules(t, policy.Options{Mode: policy.Autonomous}),
				Runner: fakeRunner{run: func(ctx context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
					inside.Add(1)
					defer inside.Add(-1)
					if answered.Load() {
						late.Add(1)
					}
					select {
					case arrived <- struct{}{}:
					default:
					}
					if release, ok := hangs.Load().(chan struct{}); ok && strings.Contains(string(call.Arguments), "hangs") {
						select {
						case <-ctx.Done():
							return tool.Result{}, ctx.Err()
						case <-release:
						}
					}
					return tool.TextResult("done"), nil
				}},
			}, spec, echoSpec())
			for range soak.Rounds(10, 500) {
				release := make(chan struct{})
				hangs.Store(release)
				answered.Store(false)
				late.Store(0)
				ctx, cancel := context.WithCancel(t.Context())
				var calling sync.WaitGroup
				for i := range 8 {
					calling.Go(func() { // ends with its calls, or with cancel
						for n := range 6 {
							name, arguments := "echo", `{"text":"a"}`
							if i%2 == 0 {
								name = "add"
							}
							if n == 3 && tt.stops {
								arguments = `{"text":"hangs"}`
							}
							h.Call(ctx, request(name, arguments))
						}
					})
				}
				<-arrived
				stop := h.halt(t, tt.scope)
				answered.Store(true)
				if now := inside.Load(); tt.stops && now > 0 {
					t.Errorf("the plugin works on %d calls after the stop", now)
				}
				close(release)
				for range 3 {
					outcome := h.Call(ctx, request("add", `{"text":"b"}`))
					if refused := outcome.Result.Error != nil; refused != tt.stops {
						t.Errorf("a call after the stop ends with %s", ending(outcome))
					}
				}
				calling.Wait()
				cancel()
				if got := late.Load() > 0; got == tt.stops {
					t.Errorf("%d calls reached the plugin after the stop", late.Load())
				}
				h.resume(t, stop.ID)
			}
		})
	}
}

// TestStopEndsWhatRuns stops the calls of ann, of which one reads, one changes something and one waits
// for a person. Those of bob go on.
func TestStopEndsWhatRuns(t *testing.T) {
	t.Parallel()
	inside, finish := make(chan struct{}, 3), make(chan struct{})
	spec, asked := addSpec(), addSpec()
	spec.HasPreview = false
	asked.Name = "remove"
	h := newHost(t, pipeline.Options{
		Policy: rules(t, policy.Options{Plugins: map[string]policy.Plugin{"test": {Tools: map[string]policy.Level{"add": {Verdict: policy.Allow}}}}}),
		Runner: fakeRunner{
			run: func(ctx context.Context, _ string, call tool.Call, _ tool.Sink) (tool.Result, error) {
				inside <- struct{}{}
				if call.Context.User == "bob" {
					<-finish
					return tool.TextResult("done"), nil
				}
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			},
			preview: func(context.Context, tool.Call) (tool.Preview, error) { return tool.Preview{Summary: "x"}, nil },
		},
	}, spec, echoSpec(), asked)
	begin := func(name, user string) *operation.Operation {
		req := request(name, `{"text":"a"}`)
		req.Caller.User = user
		o := h.Start(t.Context(), req)
		t.Cleanup(o.Release)
		return o
	}
	waits, question := h.begin(t, request("remove", `{"text":"a"}`))
	reads, changes, other := begin("echo", "ann"), begin("add", "ann"), begin("echo", "bob")
	for range 3 {
		<-inside
	}
	events := h.opts.Events.Subscribe("")

	stop := h.halt(t, killswitch.Scope{User: "ann"})
	if stop.CanceledCalls != 3 || stop.RejectedApprovals != 1 || stop.Again {
		t.Errorf("Stop() = %+v, want 3 canceled calls and a refused approval", stop)
	}
	const why = "an administrator has stopped all calls of the user ann: it deletes too much"
	for o, want := range map[*operation.Operation]string{
		reads: "unavailable: " + why, waits: "unavailable: " + why,
		changes:             "unknown_outcome: the outcome of add (call " + changes.ID() + ") is unknown: " + why,
		begin("add", "ann"): "unavailable: " + why,
	} {
		outcome := o.Wait(t.Context(), operation.Forever)
		if got := ending(outcome); got != want {
			t.Errorf("the call ends with %q, want %q", got, want)
		}
		if e := outcome.Result.Error; e.Retryable {
			t.Errorf("%s is retryable", e)
		}
	}
	r := h.record(t, question.ID)
	if r.State != approval.Rejected || r.DecidedBy != "root" || r.Via != approval.ViaStop || r.Message != why {
		t.Errorf("the question is %+v", r)
	}
	if e, err := h.Explain(request("echo", `{"text":"a"}`)); err != nil || e.Stopped != why || e.Verdict != policy.Allow {
		t.Errorf("Explain() = %+v, %v", e, err)
	}
	if end := h.rows(t, changes.ID(), 2)[1]; end.Code != string(tool.UnknownOutcome) {
		t.Errorf("the journal has %+v, want an unknown outcome", end)
	}
	close(finish)
	if got := ending(other.Wait(t.Context(), operation.Forever)); got != "done" {
		t.Errorf("the call of bob ends with %q", got)
	}

	again := h.halt(t, killswitch.Scope{User: "ann"})
	if again.ID != stop.ID || !again.Again || len(h.Stops()) != 1 {
		t.Errorf("the same stop again = %+v, in force are %v", again, h.Stops())
	}
	h.resume(t, stop.ID)
	if _, err := h.Resume(t.Context(), stop.ID, auth.Caller{User: "root"}, "rest"); tool.AsError(err).Code != tool.NotFound {
		t.Errorf("Resume() again = %v, want not_found", err)
	}
	// It is asked about as any other call.
	if _, question := h.begin(t, request("remove", `{"text":"a"}`)); question.State != approval.Open {
		t.Errorf("after resume the call finds %+v", question)
	}
	var told []string
	for len(told) < 2 {
		e, err := events.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if change, ok := e.Data.(event.CallsStopped); ok && e.User == "ann" {
			told = append(told, change.State+" "+change.Calls+" by "+change.By)
		}
	}
	if want := []string{"stopped all calls of the user ann by root", "resumed all calls of the user ann by root"}; !slices.Equal(told, want) {
		t.Errorf("events tell %q, want %q", told, want)
	}
}

// TestStoppedReadRunsAgain makes a read again after a stop that ended it: with its idempotency key, and
// after its caller was told to repeat it.
func TestStoppedReadRunsAgain(t *testing.T) {
	t.Parallel()
	inside := make(chan struct{}, 1)
	var resumed atomic.Bool
	h := newHost(t, pipeline.Options{Runner: fakeRunner{run: func(ctx context.Context, _ string, _ tool.Call, _ tool.Sink) (tool.Result, error) {
		if resumed.Load() {
			return tool.TextResult("done"), nil
		}
		inside <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}}}, echoSpec())
	for _, key := range []string{"", "k"} {
		req := request("echo", `{"text":"a"}`)
		req.IdempotencyKey = key
		resumed.Store(false)
		o := h.Start(t.Context(), req)
		<-inside
		o.KeepForRetry()
		o.Release()
		stop := h.halt(t, killswitch.Scope{User: "ann"})
		h.resume(t, stop.ID)
		resumed.Store(true)
		if got := ending(h.Call(t.Context(), req)); got != "done" {
			t.Errorf("with the key %q, the call made again ends with %q", key, got)
		}
	}
}

// TestStopOutlivesTheHost starts a host again over the same state.
func TestStopOutlivesTheHost(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), context.WithoutCancel(t.Context())
	open := func() *host {
		h, err := openHost(ctx, dir, pipeline.Options{Catalog: newCatalog(t, echoSpec()), Runner: answer(tool.TextResult("done"))})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := open()
	stop := first.halt(t, killswitch.Scope{Plugin: "test"})
	first.stop()

	second := open()
	if got := second.Stops(); len(got) != 1 || got[0] != stop.Stop {
		t.Errorf("the next host has %+v, want %+v", got, stop.Stop)
	}
	const why = "unavailable: an administrator has stopped all calls to the plugin test: it deletes too much"
	if got := ending(second.Call(t.Context(), request("echo", `{"text":"a"}`))); got != why {
		t.Errorf("a call at the next host ends with %q", got)
	}
	second.resume(t, stop.ID)
	var changes []string
	rows, err := second.opts.Journal.Query(t.Context(), journal.Query{OldestFirst: true})
	for _, row := range rows {
		if row.Kind == journal.Change {
			changes = append(changes, row.User+" over "+row.Via+": "+row.Notice)
		}
	}
	want := []string{
		"root over rest: all calls to the plugin test are stopped (" + stop.ID + "): it deletes too much; canceled calls: 0, killed processes: 0, rejected approvals: 0",
		"root over rest: all calls to the plugin test are resumed (" + stop.ID + ")",
	}
	if err != nil || !slices.Equal(changes, want) {
		t.Errorf("the journal has %q, %v, want %q", changes, err, want)
	}
	if report, err := second.opts.Journal.Verify(t.Context()); err != nil || len(report.Problems) > 0 {
		t.Errorf("Verify() = %+v, %v", report, err)
	}
	second.stop()

	third := open()
	defer third.stop()
	if got := ending(third.Call(t.Context(), request("echo", `{"text":"a"}`))); got != "done" || len(third.Stops()) > 0 {
		t.Errorf("after resume a call at the next host ends with %q", got)
	}
}

// TestStopWithoutADisk loses the database: the stop is in force nevertheless, and says that it does
// not last. It cannot be ended, since that could not be written.
func TestStopWithoutADisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, err := openHost(context.WithoutCancel(t.Context()), dir, pipeline.Options{Catalog: newCatalog(t, echoSpec()), Runner: answer(tool.TextResult("done"))})
	if err != nil {
		t.Fatal(err)
	}
	defer h.stop()
	if err := os.Remove(filepath.Join(dir, store.FileName)); err != nil {
		t.Fatal(err)
	}
	stop, err := h.Stop(t.Context(), pipeline.StopRequest{By: auth.Caller{User: "root"}})
	if err != nil || !slices.ContainsFunc(stop.Problems, func(text string) bool { return strings.Contains(text, "it is in force until the host ends") }) {
		t.Errorf("Stop() = %+v, %v", stop, err)
	}
	if got := ending(h.Call(t.Context(), request("echo", `{"text":"a"}`))); got != "unavailable: an administrator has stopped all calls" {
		t.Errorf("a call ends with %q", got)
	}
	if _, err := h.Resume(t.Context(), stop.ID, auth.Caller{User: "root"}, "rest"); err == nil || len(h.Stops()) != 1 {
		t.Errorf("Resume() = %v, in force are %v", err, h.Stops())
	}
}
