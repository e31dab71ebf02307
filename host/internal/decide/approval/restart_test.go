package approval_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/sdk/tool"
)

// restart closes everything and opens it again.
func (r *rig) restart(tb testing.TB, opts approval.Options) {
	tb.Helper()
	r.close(tb)
	*r = *open(tb, r.dir, opts)
}

func TestRecordIsKeptWhole(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	q := question(`{"path":"a.txt","token":"secret"}`)
	q.Shown = json.RawMessage(`{"path":"a.txt","token":"(hidden)"}`)
	q.Where, q.Context = "config.hcl:12", strings.Repeat("ä", 600)
	q.Preview = &tool.Preview{
		Summary: "Writes a.txt",
		Content: []tool.Content{tool.Text("--- a\n+++ b\n"), {Kind: tool.KindImage, MediaType: "image/png", Data: []byte{0xff}}},
		Digest:  []byte{1, 2},
	}
	asked := r.ask(t, q)
	if asked.Standing {
		t.Error("Standing = true for a preview with an image, which is not shown")
	}
	if n := len([]rune(asked.Context)); n != 500 || !strings.HasSuffix(asked.Context, "[cut]") {
		t.Errorf("the context has %d characters and ends in %q, want 500 and a word about the rest", n, asked.Context[len(asked.Context)-10:])
	}
	if string(asked.Arguments) != string(q.Shown) {
		t.Errorf("the arguments are %s, want %s", asked.Arguments, q.Shown)
	}
	r.restart(t, approval.Options{})
	got, err := r.service.Get(t.Context(), asked.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asked, got); diff != "" {
		t.Errorf("the record after a restart (-want +got):\n%s", diff)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var read approval.Record
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, read); diff != "" {
		t.Errorf("the record as JSON and back (-want +got):\n%s", diff)
	}
	if strings.Contains(string(text), "secret") {
		t.Errorf("the JSON tells the secret: %s", text)
	}
}

func TestRedemption(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for _, when := range []string{"before", "after"} { // the approval, against the end of the first operation
			t.Run(fmt.Sprintf("restart %t, approved %s", restart, when), func(t *testing.T) {
				r := open(t, t.TempDir(), approval.Options{})
				q := question(`{}`)
				first := r.ask(t, q)
				if when == "before" {
					r.approve(t, first.ID)
				}
				if restart {
					r.restart(t, approval.Options{})
				} else {
					r.service.Release(first.ID)
				}
				if when == "after" {
					r.approve(t, first.ID)
				}
				if again := r.ask(t, q); again.ID != first.ID || again.State != approval.Approved {
					t.Fatalf("Ask = %s, %s; want the approved %s", again.ID, again.State, first.ID)
				}
				if other := r.ask(t, q); other.ID == first.ID {
					t.Error("Ask gave the record to two ops")
				}
				if err := r.service.Spend(t.Context(), first.ID, "tc_2", q.Binding()); err != nil {
					t.Errorf("Spend = %v", err)
				}
			})
		}
	}
}

// TestRejectionIsHeard rejects a call that waits for the next host: that call is told, once.
func TestRejectionIsHeard(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	q := question(`{}`)
	first := r.ask(t, q)
	r.reject(t, first.ID)
	second := r.ask(t, q)
	if second.State != approval.Open || second.ID == first.ID {
		t.Fatalf("a call was told of the rejection of another one: %s, %s", second.ID, second.State)
	}
	r.restart(t, approval.Options{})
	r.reject(t, second.ID)
	r.restart(t, approval.Options{}) // as if the rejection came from a command
	if other := r.ask(t, question(`{"path":"b"}`)); other.State != approval.Open {
		t.Errorf("another call is told of the rejection: %s", other.State)
	}
	if told := r.ask(t, q); told.ID != second.ID || told.State != approval.Rejected || told.Message != "no" {
		t.Errorf("Ask = %s, %s, %q; want the rejected %s", told.ID, told.State, told.Message, second.ID)
	}
	if again := r.ask(t, q); again.State != approval.Open {
		t.Errorf("a second call is told of the rejection, too: %s, %s", again.ID, again.State)
	}
}

// TestRejectionAtTheEnd rejects calls that wait for a host that stops: a rejection before the wait
// has ended is the waiting call's, and the next call is told of a later one.
func TestRejectionAtTheEnd(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	early, late := r.ask(t, question(`{"path":"early"}`)), r.ask(t, question(`{"path":"late"}`))
	r.reject(t, early.ID)
	if err := r.service.Close(); err != nil {
		t.Fatal(err)
	}
	for range 50 { // Wait has two reasons to end, and must heed one
		if got, err := r.service.Wait(t.Context(), early.ID); err != nil || got.State != approval.Rejected {
			t.Fatalf("Wait = %s, %v; want it rejected", got.State, err)
		}
	}
	if got, err := r.service.Wait(t.Context(), late.ID); tool.AsError(err).Code != tool.Unavailable {
		t.Errorf("Wait = %s, %v; want that the host stops", got.State, err)
	}
	r.reject(t, late.ID)
	r.restart(t, approval.Options{})
	if told := r.ask(t, question(`{"path":"early"}`)); told.State != approval.Open {
		t.Errorf("a rejection is told twice: %s", told.State)
	}
	if told := r.ask(t, question(`{"path":"late"}`)); told.ID != late.ID || told.State != approval.Rejected {
		t.Errorf("Ask = %s, %s; want the rejected %s", told.ID, told.State, late.ID)
	}
}

// TestOldRejectionIsForgotten rejects a call that nobody makes again before it would have expired.
func TestOldRejectionIsForgotten(t *testing.T) {
	clock := &wall{}
	r := open(t, t.TempDir(), approval.Options{Timeout: time.Hour, Now: clock.now})
	q := question(`{}`)
	first := r.ask(t, q)
	r.service.Release(first.ID)
	r.reject(t, first.ID)
	clock.set(time.Hour)
	if again := r.ask(t, q); again.State != approval.Open {
		t.Errorf("Ask = %s, %s; want a new record", again.ID, again.State)
	}
}

// An answer wakes the operation that took up a record of an earlier run.
func TestWaitAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, t.TempDir(), approval.Options{})
		q := question(`{}`)
		id := r.ask(t, q).ID
		r.restart(t, approval.Options{})
		listed, err := r.service.List(t.Context(), approval.Filter{By: approver("ada"), States: []approval.State{approval.Open}})
		if err != nil || len(listed) != 1 || listed[0].ID != id {
			t.Fatalf("List = %v, %v; want the open %s", listed, err, id)
		}
		got := make(chan approval.Record, 1)
		go func() {
			r, err := r.service.Wait(context.WithoutCancel(t.Context()), id)
			if err != nil {
				t.Errorf("Wait = %v", err)
			}
			got <- r
		}()
		synctest.Wait()
		if _, err := r.service.Decide(t.Context(), r.seeing(t, approval.Decision{ID: id, By: approver("ada"), Message: "wrong file"})); err != nil {
			t.Fatal(err)
		}
		if r := <-got; r.State != approval.Rejected || r.Message != "wrong file" {
			t.Errorf("Wait = %+v, want it rejected with the message", r)
		}
	})
}

// Approvals of an earlier run expire on time; approvals from the future expire at once.
func TestExpiryAfterRestart(t *testing.T) {
	for _, tt := range []struct {
		name       string
		down       time.Duration // how long the host was down
		jump       time.Duration // of the wall clock, in the meantime
		timeout    time.Duration // of the second run
		want       approval.State
		expires    time.Duration // how long it is open in the second run
		wasExpired bool
	}{
		{"in time", 5 * time.Minute, 0, 10 * time.Minute, approval.Open, 5 * time.Minute, false},
		{"late", 11 * time.Minute, 0, 10 * time.Minute, approval.Expired, 0, true},
		{"set back behind its making", 5 * time.Minute, -time.Hour, 10 * time.Minute, approval.Expired, 0, true},
		{"set forward", time.Minute, time.Hour, 10 * time.Minute, approval.Expired, 0, true},
		{"a shorter timeout", time.Minute, 0, 2 * time.Minute, approval.Open, 2 * time.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock wall
				r := open(t, t.TempDir(), approval.Options{Now: clock.now})
				id := r.ask(t, question(`{}`)).ID
				r.close(t)
				wait(tt.down)
				clock.set(tt.jump)
				var seen changes
				*r = *open(t, r.dir, approval.Options{Now: clock.now, Timeout: tt.timeout, Changed: seen.add})
				up := time.Now()
				synctest.Wait()
				if got := r.state(t, id); got != tt.want {
					t.Errorf("it is %s, want %s", got, tt.want)
				}
				got, err := r.service.Wait(t.Context(), id)
				if err != nil || got.State != approval.Expired {
					t.Errorf("Wait = %s, %v; want it expired", got.State, err)
				}
				if open := time.Since(up); open < tt.expires || open > tt.expires+time.Second {
					t.Errorf("it was open for %v, want %v", open, tt.expires)
				}
				if states := seen.states(id); !slices.Equal(states, []approval.State{approval.Expired}) {
					t.Errorf("Changed saw %v, want that it expired", states)
				}
			})
		})
	}
}

func TestTooManyOpen(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	var ids []string
	for n := range 20 {
		ids = append(ids, r.ask(t, question(fmt.Sprintf(`{"n":%d}`, n))).ID)
	}
	_, err := r.service.Ask(t.Context(), question(`{"n":20}`))
	e := tool.AsError(err)
	if e.Code != tool.RateLimited || !e.Retryable || !strings.Contains(e.Hint, "and 15 more") || !strings.Contains(e.Hint, ids[0]) {
		t.Errorf("Ask = %v (hint %q), want %s and which are open", err, e.Hint, tool.RateLimited)
	}
	other := question(`{}`)
	other.User = "bob"
	r.ask(t, other) // others are not concerned
	r.approve(t, ids[3])
	r.ask(t, question(`{"n":20}`))
	if err := r.service.Cancel(t.Context(), ids[4]); err != nil {
		t.Fatal(err)
	}
	r.ask(t, question(`{"n":21}`))
	if _, err := r.service.Ask(t.Context(), question(`{"n":22}`)); code(err) != tool.RateLimited {
		t.Errorf("Ask = %v, want %s", err, tool.RateLimited)
	}
}

func TestCancel(t *testing.T) {
	var seen changes
	r := open(t, t.TempDir(), approval.Options{Changed: seen.add})
	q := question(`{}`)
	open, approved := r.ask(t, q), r.ask(t, q)
	r.approve(t, approved.ID)
	for _, id := range []string{open.ID, approved.ID, open.ID, "ap_0"} { // twice, and an unknown one
		if err := r.service.Cancel(t.Context(), id); err != nil {
			t.Errorf("Cancel(%s) = %v", id, err)
		}
	}
	if got, err := r.service.Wait(t.Context(), open.ID); err != nil || got.State != approval.Canceled || got.Via != "caller" {
		t.Errorf("Wait = %+v, %v; want it canceled by its caller", got, err)
	}
	if err := r.service.Spend(t.Context(), approved.ID, "tc_1", q.Binding()); code(err) != tool.Canceled {
		t.Errorf("Spend = %v, want %s", err, tool.Canceled)
	}
	if got := r.decide(t, approval.Decision{ID: open.ID, By: approver("ada"), Approve: true}); got != tool.Conflict {
		t.Errorf("Decide = %q, want %s", got, tool.Conflict)
	}
	if got, want := seen.states(open.ID), []approval.State{approval.Open, approval.Canceled}; !slices.Equal(got, want) {
		t.Errorf("Changed saw %v, want %v", got, want)
	}
	if _, err := r.service.Wait(t.Context(), "ap_0"); code(err) != tool.NotFound {
		t.Errorf("Wait for an unknown id = %v, want %s", err, tool.NotFound)
	}
}

// TestCancelBesideTheSameCall cancels a question while the same call is made again, by another session:
// that one gets a question of its own, which stays open.
func TestCancelBesideTheSameCall(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{MaxOpen: 1000})
	for range 30 {
		canceled := r.ask(t, question(`{}`))
		ended := make(chan error, 1)
		go func() { ended <- r.service.Cancel(t.Context(), canceled.ID) }() // ends with the write
		again := r.ask(t, question(`{}`))
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if got, err := r.service.Get(t.Context(), again.ID); err != nil || got.State != approval.Open {
			t.Fatalf("the question of the second call is %v, %v; want it open", got.State, err)
		}
	}
}

func TestList(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	ids := make(map[string]string)
	for _, user := range []string{"ada", "bob", "eve"} {
		q := question(`{"path":"` + user + `.txt"}`)
		q.User = user
		ids[user] = r.ask(t, q).ID
	}
	if _, err := r.service.Decide(t.Context(), r.seeing(t, approval.Decision{ID: ids["bob"], By: approver("bob"), Approve: true})); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		filter approval.Filter
		want   []string
	}{
		{"nobody", approval.Filter{}, nil},
		{"an agent", approval.Filter{By: auth.Caller{User: "ada", Roles: auth.Agent}}, nil},
		{"an agent that calls itself an admin", approval.Filter{By: auth.Caller{User: "ada", Roles: auth.Agent | auth.Admin}}, nil},
		{"an approver", approval.Filter{By: auth.Caller{User: "ada", Roles: auth.Approver}}, []string{"ada"}},
		{"an approver for others", approval.Filter{By: auth.Caller{User: "ada", Roles: auth.Approver, Approves: []string{"eve"}}}, []string{"eve", "ada"}},
		{"an approver who asks about others", approval.Filter{By: auth.Caller{User: "ada", Roles: auth.Approver}, Users: []string{"bob"}}, nil},
		{"an admin", approval.Filter{By: auth.Caller{User: "x", Roles: auth.Admin}}, []string{"eve", "bob", "ada"}},
		{"some users", approval.Filter{By: approver("x"), Users: []string{"ada", "bob"}}, []string{"bob", "ada"}},
		{"some states", approval.Filter{By: approver("x"), States: []approval.State{approval.Approved, approval.Spent}}, []string{"bob"}},
		{"a limit", approval.Filter{By: approver("x"), Limit: 1}, []string{"eve"}},
	} {
		all, err := r.service.List(t.Context(), tt.filter)
		if err != nil {
			t.Fatal(err)
		}
		var users []string
		for _, record := range all {
			users = append(users, record.User)
			if record.Arguments != nil || !strings.Contains(record.Summary, record.User+".txt") {
				t.Errorf("%s: List = %+v, want a summary and no arguments", tt.name, record)
			}
			if found, err := r.service.Find(t.Context(), record.ID, tt.filter.By); err != nil || found.Arguments == nil {
				t.Errorf("%s: Find(%s) = %+v, %v; want it whole", tt.name, record.ID, found, err)
			}
		}
		if !slices.Equal(users, tt.want) {
			t.Errorf("%s: List = those of %v, want those of %v", tt.name, users, tt.want)
		}
	}
	by := auth.Caller{User: "ada", Roles: auth.Approver}
	_, foreign := r.service.Find(t.Context(), ids["bob"], by)
	_, missing := r.service.Find(t.Context(), "ap_0", by)
	if code(foreign) != tool.NotFound || strings.ReplaceAll(foreign.Error(), ids["bob"], "") != strings.ReplaceAll(missing.Error(), "ap_0", "") {
		t.Errorf("Find of a foreign record = %v, of a missing one = %v; they can be told apart", foreign, missing)
	}
}

// TestRecordOfACall finds the record of a call's question, so that the call can be made again:
// with its arguments byte for byte, unless some are hidden.
func TestRecordOfACall(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	const arguments = `{"n":1.50,"text":"<a href='x'>&\u2028 😀"}`
	q := question(arguments)
	q.Call = "tc_1"
	first := r.ask(t, q)
	second := r.ask(t, q) // the call started again
	hidden := question(`{"token":"secret"}`)
	hidden.Call, hidden.Shown = "tc_2", json.RawMessage(`{"token":"(hidden)"}`)
	r.ask(t, hidden)
	r.restart(t, approval.Options{})
	for _, tt := range []struct {
		user, call, want string
		repeatable       bool
	}{
		{q.User, "tc_1", second.ID, true},
		{q.User, "tc_2", "", false},
		{"somebody", "tc_1", "none", false},
		{q.User, "tc_3", "none", false},
	} {
		got, err := r.service.OfCall(t.Context(), tt.user, tt.call)
		if tt.want == "none" {
			if code(err) != tool.NotFound {
				t.Errorf("OfCall(%s, %s) = %s, %v; want %s", tt.user, tt.call, got.ID, err, tool.NotFound)
			}
			continue
		}
		if err != nil || tt.want != "" && got.ID != tt.want || got.Repeatable() {
			t.Fatalf("OfCall(%s, %s) = %+v, %v; want the last record, without arguments", tt.user, tt.call, got, err)
		}
		whole, err := r.service.Get(t.Context(), got.ID)
		if err != nil || whole.Repeatable() != tt.repeatable || tt.repeatable && string(whole.Arguments) != arguments {
			t.Errorf("the whole record of %s = %s, %v; Repeatable() = %t, want %t", tt.call, whole.Arguments, err, whole.Repeatable(), tt.repeatable)
		}
	}
	if first.ID == second.ID {
		t.Error("both questions are one")
	}
}
