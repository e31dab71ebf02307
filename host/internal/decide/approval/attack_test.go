package approval_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// state reads the state on disk.
func (r *rig) state(tb testing.TB, id string) approval.State {
	tb.Helper()
	var state approval.State
	if err := r.store.Read().QueryRowContext(tb.Context(), "SELECT state FROM approvals WHERE id = ?", id).Scan(&state); err != nil {
		tb.Fatal(err)
	}
	return state
}

// decide decides as user, and returns the code of the error, or "".
func (r *rig) decide(tb testing.TB, dec approval.Decision) tool.Code {
	tb.Helper()
	_, err := r.service.Decide(tb.Context(), r.seeing(tb, dec))
	return code(err)
}

func code(err error) tool.Code {
	if err == nil {
		return ""
	}
	return tool.AsError(err).Code
}

// Each attack runs against the guard, which must hold, and in the same situation without it,
// where the damage must happen: otherwise it is not an attack.
func TestAttacks(t *testing.T) {
	const timeout = time.Minute
	approve := func(r *rig) approval.Decision {
		return approval.Decision{ID: r.ask(r.tb, question(`{}`)).ID, By: approver("ada"), Approve: true}
	}
	preview := func(summary, digest string) func(*approval.Question) {
		return func(q *approval.Question) { q.Preview = &tool.Preview{Summary: summary, Digest: []byte(digest)} }
	}
	for _, tt := range []struct {
		name   string
		attack attack
	}{
		{"a second decision", decidedAgain(func(r *rig, id string) {
			r.decide(r.tb, approval.Decision{ID: id, By: approver("ada"), Message: "no"})
		}, true)},
		{"a rejection of what was approved", decidedAgain(func(r *rig, id string) { r.approve(r.tb, id) }, false)},
		{"a decision about what has expired", decidedAgain(func(*rig, string) { wait(timeout); synctest.Wait() }, true)},
		{"a decision about what was canceled", decidedAgain(func(r *rig, id string) { _ = r.service.Cancel(r.tb.Context(), id) }, true)},
		{"a late decision", decided(tool.Conflict, func(r *rig) approval.Decision {
			dec := approve(r)
			synctest.Wait()
			r.clock.set(timeout) // before anything has closed the record
			return dec
		}, func(s *approval.Sight) { s.Late = false })},
		{"a decision by an agent that has every role", decided(tool.PermissionDenied, func(r *rig) approval.Decision {
			dec := approve(r)
			dec.By.Roles |= auth.Agent
			return dec
		}, func(s *approval.Sight) { s.Decision.By.Roles &^= auth.Agent })},
		{"a decision by an admin", decided(tool.PermissionDenied, func(r *rig) approval.Decision {
			dec := approve(r)
			dec.By.Roles = auth.Admin
			return dec
		}, func(s *approval.Sight) { s.Decision.By.Roles |= auth.Approver })},
		{"a decision by another user's approver", decided(tool.NotFound, func(r *rig) approval.Decision {
			dec := approve(r)
			dec.By = approver("eve")
			return dec
		}, func(s *approval.Sight) { s.Decision.By.Approves = []string{"ada"} })},
		{"a decision about other arguments than were shown", decided(tool.Conflict, func(r *rig) approval.Decision {
			dec := approve(r)
			dec.ArgumentsHash = "sha256:0"
			return dec
		}, func(s *approval.Sight) { s.Decision.ArgumentsHash = s.Record.ArgumentsHash })},
		{"a decision about another preview than was shown", decided(tool.Conflict, func(r *rig) approval.Decision {
			dec := r.seeing(r.tb, approve(r))
			dec.PreviewDigest = "sha256:0"
			return dec
		}, func(s *approval.Sight) { s.Decision.PreviewDigest = s.Record.PreviewDigest })},
		{"always, where the policy wants each call to be seen", decided(tool.PermissionDenied, func(r *rig) approval.Decision {
			q := question(`{}`)
			q.Standing = false
			return approval.Decision{ID: r.ask(r.tb, q).ID, By: approver("ada"), Approve: true, Grant: &approval.Terms{}}
		}, func(s *approval.Sight) { s.Record.Standing = true })},
		{"other arguments", spentByAnother(
			func(q *approval.Question) { q.Arguments = json.RawMessage(`{"path":"b.txt"}`) }, func(q *approval.Question) { q.Arguments = nil })},
		{"another user", spentByAnother(func(q *approval.Question) { q.User = "eve" }, func(q *approval.Question) { q.User = "" })},
		{"another client", spentByAnother(func(q *approval.Question) { q.Client = "other" }, func(q *approval.Question) { q.Client = "" })},
		{"another tool", spentByAnother(func(q *approval.Question) { q.Tool = "delete" }, func(q *approval.Question) { q.Tool = "" })},
		{"another plugin", spentByAnother(func(q *approval.Question) { q.Plugin = "q" }, func(q *approval.Question) { q.Plugin = "" })},
		{"another program", spentByAnother(func(q *approval.Question) { q.Digest = "sha256:2" }, func(q *approval.Question) { q.Digest = "" })},
		{"another state of the world", spentByAnother(preview("Writes a.txt", "2"), func(q *approval.Question) {
			q.Preview = &tool.Preview{Summary: q.Preview.Summary}
		})},
		{"another preview of the same state", spentByAnother(preview("Writes b.txt", "1"), func(q *approval.Question) {
			q.Preview = &tool.Preview{Digest: q.Preview.Digest}
		})},
		{"another sensitive file", spentByAnother(
			func(q *approval.Question) { q.Sensitive = []string{"/ws/a/.env"} }, func(q *approval.Question) { q.Sensitive = nil })},
		{"no preview any more", spentByAnother(
			func(q *approval.Question) { q.Preview = nil }, func(q *approval.Question) { q.Preview = nil })},
		{"names that run into each other", func(_ *rig, guard bool) bool {
			a, b := question(`{}`), question(`{}`)
			a.User, a.Client = "ada", "x"
			b.User, b.Client = "ad", "ax"
			if guard {
				return a.Binding() == b.Binding()
			}
			joined := func(q approval.Question) [32]byte {
				return sha256.Sum256([]byte(q.User + q.Client + q.Plugin + q.Tool + string(q.Arguments) + q.Digest))
			}
			return joined(a) == joined(b)
		}},
		{"spending again", spent(tool.Conflict, func(r *rig, id, binding string) {
			r.approve(r.tb, id)
			if err := r.service.Spend(r.tb.Context(), id, "tc_1", binding); err != nil {
				r.tb.Error(err)
			}
		})},
		{"spending what is open", spent(tool.PendingApproval, func(*rig, string, string) {})},
		{"spending what was rejected", spent(tool.Rejected, func(r *rig, id, _ string) {
			r.decide(r.tb, approval.Decision{ID: id, By: approver("ada")})
		})},
		{"spending what was canceled", spent(tool.Canceled, func(r *rig, id, _ string) {
			r.approve(r.tb, id)
			_ = r.service.Cancel(r.tb.Context(), id)
		})},
		{"spending what has expired", spent(tool.Rejected, func(r *rig, id, _ string) {
			r.approve(r.tb, id)
			wait(timeout)
			synctest.Wait()
		})},
		{"spending late", func(r *rig, guard bool) bool {
			q := question(`{}`)
			record := r.ask(r.tb, q)
			r.approve(r.tb, record.ID)
			synctest.Wait()
			r.clock.set(timeout) // before anything has closed the record
			if guard {
				if err := r.service.Spend(r.tb.Context(), record.ID, "tc_2", q.Binding()); code(err) != tool.Rejected {
					r.tb.Errorf("Spend = %v, want %s", err, tool.Rejected)
				}
			} else {
				r.spendAnyTime(r.tb, record.ID, q.Binding())
			}
			return r.state(r.tb, record.ID) == approval.Spent && !r.clock.now().Before(record.Expires)
		}},
		{"spending a hundred times at once", func(r *rig, guard bool) bool {
			q := question(`{}`)
			record := r.ask(r.tb, q)
			r.approve(r.tb, record.ID)
			spend := func() bool { return r.service.Spend(r.tb.Context(), record.ID, "tc_1", q.Binding()) == nil }
			if !guard { // the state is checked before, and not while, it is changed
				_, unguarded := without(r.tb, "decide.go", onlyApproved)
				spend = r.looksFirst(record.ID, approval.Approved, func() bool {
					return r.exec(r.tb, unguarded, "tc_1", r.clock.now().UnixMilli(), record.ID, q.Binding()) == 1
				})
			}
			return hundred(spend) != 1
		}},
		{"spending again after a restart", func(r *rig, guard bool) bool {
			q := question(`{}`)
			record := r.ask(r.tb, q)
			r.approve(r.tb, record.ID)
			runs := 0
			for range 2 {
				inMemory := make(map[string]bool) // the memory of a host whose record of spent approvals is not on disk
				for range 2 {
					switch {
					case guard && r.service.Spend(r.tb.Context(), record.ID, "tc_1", q.Binding()) == nil,
						!guard && r.state(r.tb, record.ID) == approval.Approved && !inMemory[record.ID]:
						inMemory[record.ID] = true
						runs++
					}
				}
				r.restart(r.tb, approval.Options{Timeout: timeout})
			}
			return runs != 1
		}},
		{"the same call again after it ran", func(r *rig, guard bool) bool {
			q := question(`{}`)
			record := r.ask(r.tb, q)
			r.approve(r.tb, record.ID)
			if guard { // otherwise it ran without being spent
				if err := r.service.Spend(r.tb.Context(), record.ID, "tc_1", q.Binding()); err != nil {
					r.tb.Fatal(err)
				}
			}
			r.service.Release(record.ID)
			return r.ask(r.tb, q).State == approval.Approved
		}},
		{"two calls for one approval", func(r *rig, guard bool) bool {
			q := question(`{}`)
			first := r.ask(r.tb, q)
			if !guard { // the first operation waits on, but has lost its claim
				r.service.Release(first.ID)
			}
			return r.ask(r.tb, q).ID == first.ID
		}},
		{"changing what was asked", func(r *rig, guard bool) bool {
			record := r.ask(r.tb, question(`{}`))
			if !guard {
				r.exec(r.tb, "DROP TRIGGER approvals_fixed")
			}
			err := r.store.Do(r.tb.Context(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(r.tb.Context(), "UPDATE approvals SET binding = 'x' WHERE id = ?", record.ID)
				return err
			})
			return err == nil
		}},
	} {
		for _, guard := range []bool{true, false} {
			name := tt.name
			if !guard {
				name += ", without the guard"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					clock := &wall{}
					r := open(t, t.TempDir(), approval.Options{Timeout: timeout, Now: clock.now})
					r.clock = clock
					if damage := tt.attack(r, guard); damage == guard {
						t.Errorf("damage = %t with guard = %t", damage, guard)
					}
				})
			})
		}
	}
}

// looksFirst returns an act of a hundred that all see a record in a state
// before any of them acts.
func (r *rig) looksFirst(id string, want approval.State, act func() bool) func() bool {
	var looked sync.WaitGroup
	looked.Add(100)
	return func() bool {
		state := r.state(r.tb, id)
		looked.Done()
		looked.Wait()
		return state == want && act()
	}
}

// Approvers cannot tell the approval of a user they do not approve for from one that does not
// exist.
func TestForeignIsMissing(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	record := r.ask(t, question(`{}`))
	for _, tt := range []struct {
		by   string
		same bool
	}{{"eve", true}, {"ada", false}} { // for ada, who may decide it, the two differ
		refused := func(id string) string {
			_, err := r.service.Decide(t.Context(), r.seeing(t, approval.Decision{ID: id, By: approver(tt.by), Approve: true, ArgumentsHash: "sha256:0"}))
			return strings.ReplaceAll(err.Error(), id, "ID")
		}
		if foreign, missing := refused(record.ID), refused("ap_0"); (foreign == missing) != tt.same {
			t.Errorf("to %s the id = %q, a missing one = %q; alike is wanted: %t", tt.by, foreign, missing, tt.same)
		}
	}
}

// wait lets the bubble's time pass.
func wait(d time.Duration) {
	synctest.Wait()
	<-time.After(d)
}

// hundred calls f a hundred times at once and returns how often it is true.
func hundred(f func() bool) int64 {
	var n atomic.Int64
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range 100 {
		all.Go(func() {
			<-begin
			if f() {
				n.Add(1)
			}
		})
	}
	close(begin)
	all.Wait()
	return n.Load()
}

// A hundred people decide at once: one decision wins, and all learn which. In the control, which
// checks the state before it writes, several win.
func TestOneDecisionOfAHundredCounts(t *testing.T) {
	var seen changes
	r := open(t, t.TempDir(), approval.Options{Changed: seen.add})
	record := r.ask(t, question(`{}`))
	var mu sync.Mutex
	outcomes := make(map[string]int)
	var number, won atomic.Int64
	hundred(func() bool {
		n := number.Add(1)
		by := approver("ada")
		got, err := r.service.Decide(t.Context(), r.seeing(t, approval.Decision{
			ID: record.ID, By: by, Approve: n%2 == 0, Grant: terms(n%4 == 0), Message: strings.Repeat("x", int(n)), Via: "cli",
		}))
		if err == nil {
			won.Add(1)
		} else if code(err) != tool.Conflict {
			t.Errorf("Decide = %v, want %s", err, tool.Conflict)
		}
		mu.Lock()
		defer mu.Unlock()
		outcomes[string(got.State)+" "+got.Message]++
		return true
	})
	if won.Load() != 1 || len(outcomes) != 1 {
		t.Errorf("%d decisions counted, and the outcomes were %v; want one", won.Load(), outcomes)
	}
	if states := seen.states(record.ID); len(states) != 2 {
		t.Errorf("Changed saw %v, want the question and one decision", states)
	}
	got, err := r.service.Get(t.Context(), record.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, covered := r.covering("ada", "p", "put")
	if always := len(got.Message)%4 == 0; covered != always {
		t.Errorf("a grant = %t after decision %d, want %t", covered, len(got.Message), always)
	}

	raced := r.ask(t, question(`{"n":1}`))
	_, unguarded := without(t, "decide.go", onlyOpen)
	if n := hundred(r.looksFirst(raced.ID, approval.Open, func() bool {
		return r.exec(t, unguarded, approval.Approved, "ada", "cli", "", r.clock.now().UnixMilli(), 0, 0, "", raced.ID) == 1
	})); n < 2 {
		t.Errorf("control: without the clause %d decisions counted, want several", n)
	}
}

func TestDecisionsThatAreRefused(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	record := r.ask(t, question(`{}`))
	plain := auth.Caller{User: "ada", Roles: auth.Approver}
	for _, tt := range []struct {
		name string
		dec  approval.Decision
		want tool.Code
	}{
		{"no role", approval.Decision{By: auth.Caller{User: "ada"}, Approve: true}, tool.PermissionDenied},
		{"an admin that is no approver", approval.Decision{By: auth.Caller{User: "ada", Roles: auth.Admin}, Approve: true}, tool.PermissionDenied},
		{"a long message", approval.Decision{By: plain, Message: strings.Repeat("é", 2001)}, tool.InvalidArgument},
		{"a standing rejection", approval.Decision{By: plain, Grant: &approval.Terms{}}, tool.InvalidArgument},
		{"another preview", approval.Decision{By: plain, Approve: true, ArgumentsHash: record.ArgumentsHash, PreviewDigest: "sha256:0"}, tool.Conflict},
		{"other arguments", approval.Decision{By: plain, Approve: true, ArgumentsHash: "sha256:0"}, tool.Conflict},
		{"another user's", approval.Decision{By: auth.Caller{User: "eve", Roles: auth.Approver, Approves: []string{"bob"}}}, tool.NotFound},
	} {
		tt.dec.ID = record.ID
		if got := r.decide(t, tt.dec); got != tt.want {
			t.Errorf("%s: Decide = %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := r.state(t, record.ID); got != approval.Open {
		t.Errorf("the record is %s, want it open", got)
	}
	by := auth.Caller{User: "eve", Roles: auth.Approver, Approves: []string{"ada"}}
	dec := approval.Decision{ID: record.ID, By: by, Approve: true, ArgumentsHash: record.ArgumentsHash, Message: strings.Repeat("é", 2000)}
	if got := r.decide(t, dec); got != "" {
		t.Errorf("an approver for ada: Decide = %q, want it to count", got)
	}
}

func TestQuestionsThatAreRefused(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	for _, tt := range []struct {
		name   string
		change func(*approval.Question)
		want   tool.Code
	}{
		{"no user", func(q *approval.Question) { q.User = "" }, tool.Internal},
		{"a verdict that asks nobody", func(q *approval.Question) { q.Verdict = policy.Allow }, tool.Internal},
		{"no tier", func(q *approval.Question) { q.Tier = 0 }, tool.Internal},
		{"arguments that are no JSON", func(q *approval.Question) { q.Arguments = json.RawMessage(`{`) }, tool.Internal},
		{"a long name", func(q *approval.Question) { q.Client = strings.Repeat("x", 1025) }, tool.InvalidArgument},
		{"a name that is no UTF-8", func(q *approval.Question) { q.Client = "\xff" }, tool.InvalidArgument},
		{"a preview that is no UTF-8", func(q *approval.Question) { q.Preview = &tool.Preview{Summary: "\xff"} }, tool.OutputInvalid},
		{"a preview without a kind", func(q *approval.Question) { q.Preview = &tool.Preview{Content: []tool.Content{{}}} }, tool.OutputInvalid},
		{"a preview in a thousand parts", func(q *approval.Question) {
			q.Preview = &tool.Preview{Content: make([]tool.Content, 1000)}
		}, tool.OutputInvalid},
		{"a preview of 9 MiB", func(q *approval.Question) {
			q.Preview = &tool.Preview{Content: []tool.Content{tool.Text(strings.Repeat("x", 9<<20))}}
		}, tool.ResourceExhausted},
	} {
		q := question(`{}`)
		tt.change(&q)
		if _, err := r.service.Ask(t.Context(), q); code(err) != tt.want {
			t.Errorf("%s: Ask = %v, want %s", tt.name, err, tt.want)
		}
	}
	if all, err := r.service.List(t.Context(), approval.Filter{By: approver("ada")}); len(all) > 0 || err != nil {
		t.Errorf("List = %v, %v; want none", all, err)
	}
}

// TestDecisionSaysWhatWasSeen: a decision, approval or rejection, that does not name what the
// approver saw leaves the record open.
func TestDecisionSaysWhatWasSeen(t *testing.T) {
	r := open(t, t.TempDir(), approval.Options{})
	q := question(`{}`)
	q.Preview = &tool.Preview{Summary: "Writes a.txt"}
	record := r.ask(t, q)
	for _, approve := range []bool{true, false} {
		for _, tt := range []struct {
			arguments, preview string
			want               tool.Code
		}{
			{"", "", tool.InvalidArgument},
			{record.ArgumentsHash, "", tool.InvalidArgument},
			{"", record.PreviewDigest, tool.InvalidArgument},
			{record.ArgumentsHash, "sha256:0", tool.Conflict},
			{"sha256:0", record.PreviewDigest, tool.Conflict},
		} {
			_, err := r.service.Decide(t.Context(), approval.Decision{
				ID: record.ID, By: approver("ada"), Approve: approve, ArgumentsHash: tt.arguments, PreviewDigest: tt.preview,
			})
			if code(err) != tt.want {
				t.Errorf("Decide(approve %t, %q, %q) = %v, want %s", approve, tt.arguments, tt.preview, err, tt.want)
			}
		}
	}
	if got := r.state(t, record.ID); got != approval.Open {
		t.Errorf("the record is %s, want it open", got)
	}
	r.approve(t, record.ID)
}
