package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/sdk/tool"
)

// counter is a tool that adds to a number. Its preview shows the number, and the tool refuses
// to run if the number has changed since.
type counter struct {
	mu    sync.Mutex // guards the fields below
	value string
	ran   []tool.Call
}

func (c *counter) Run(_ context.Context, _, _ string, call tool.Call, _ tool.Sink) (tool.Result, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := call.Context.PreviewDigest; d != nil && string(d) != c.value {
		return tool.ErrorResult(tool.Errorf(tool.Conflict, "the value has changed since the preview")), true, nil
	}
	c.ran = append(c.ran, call)
	return tool.TextResult("added"), true, nil
}

func (c *counter) Preview(_ context.Context, _, _ string, call tool.Call) (tool.Preview, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return tool.Preview{
		Summary: "adds to " + c.value, Content: []tool.Content{tool.Text(string(call.Arguments))}, Digest: []byte(c.value),
	}, nil
}

func (c *counter) set(value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value = value
}

// calls returns the arguments of the calls that ran.
func (c *counter) calls() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	for _, call := range c.ran {
		list = append(list, string(call.Arguments))
	}
	return strings.Join(list, " ")
}

func addSpec() tool.Spec {
	spec := echoSpec()
	spec.Name, spec.Aliases, spec.Tier, spec.TierWhen, spec.HasPreview = "add", nil, tool.SideEffecting, nil, true
	return spec
}

// begin starts a call and returns it with its question.
func (h *host) begin(t *testing.T, req pipeline.Request) (*operation.Operation, approval.Record) {
	t.Helper()
	f := h.Start(t.Context(), req)
	t.Cleanup(f.Release)
	outcome := f.Wait(t.Context(), 0)
	if !outcome.Pending {
		t.Fatalf("%s(%s) = %+v, want it to wait for a person", req.Tool, req.Arguments, outcome)
	}
	return f, h.nextQuestion(t)
}

func (h *host) record(t *testing.T, id string) approval.Record {
	t.Helper()
	record, err := h.opts.Approvals.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// answer decides a question.
func (h *host) answer(t *testing.T, id string, approve bool) {
	t.Helper()
	decision := approval.Decision{ID: id, By: approver, Approve: approve, Message: "since I say so", Via: "test"}
	if _, err := h.opts.Approvals.Decide(t.Context(), seeing(h.record(t, id), decision)); err != nil {
		t.Fatal(err)
	}
}

// seeing returns the decision of an approver who has seen the record.
func seeing(record approval.Record, decision approval.Decision) approval.Decision {
	decision.ArgumentsHash, decision.PreviewDigest = record.ArgumentsHash, record.PreviewDigest
	return decision
}

// rows waits until the journal has want rows about a call, and returns them.
func (h *host) rows(t *testing.T, call string, want int) []journal.Record {
	t.Helper()
	var rows []journal.Record
	for row, err := range h.opts.Journal.Follow(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if row.Call == call {
			rows = append(rows, row)
		}
		if len(rows) == want {
			break
		}
	}
	return rows
}

func TestApprovedCallRuns(t *testing.T) {
	plugin := &counter{value: "1"}
	h := newHost(t, pipeline.Options{Runner: plugin, Roots: []string{"/project"}, Policy: rules(t, policy.Options{Protected: []string{"/project/config.hcl"}})}, addSpec())
	req := request("add", `{"text":"a"}`)
	req.Context = "since the user asked for it"
	f, question := h.begin(t, req)
	if question.State != approval.Open || question.Context != req.Context || question.Preview == nil || question.Preview.Summary != "adds to 1" ||
		string(question.Arguments) != `{"text":"a"}` || question.Rule != "tier side_effecting" || question.Call != f.ID() {
		t.Errorf("the question is %+v", question)
	}
	if plugin.calls() != "" {
		t.Fatal("the call ran before anybody approved it")
	}
	h.answer(t, question.ID, true)
	outcome := f.Wait(t.Context(), operation.Forever)
	if outcome.Result.Error != nil || outcome.Result.Text() != "added" || outcome.Approval != question.ID {
		t.Fatalf("Wait = %+v, want the result", outcome)
	}
	got := plugin.ran[0].Context
	if got.ApprovalID != question.ID || string(got.PreviewDigest) != "1" || fmt.Sprint(got.Protected) != "[/project/config.hcl]" {
		t.Errorf("the plugin's context is %+v", got)
	}
	if after := h.record(t, question.ID); after.State != approval.Spent || after.SpentBy != f.ID() {
		t.Errorf("afterwards the record is %s, by %q", after.State, after.SpentBy)
	}
	rows := h.rows(t, f.ID(), 2)
	if rows[0].Kind != journal.Start || rows[1].Kind != journal.End || rows[1].Status != "success" ||
		rows[0].Context != req.Context || rows[1].Context != req.Context {
		t.Fatalf("the journal has %+v, want a start and an end, with what the agent said", rows)
	}
	for _, row := range rows {
		if row.ApprovedBy != "user" || row.Approver != "ann" || row.Via != "test" || row.Approval != question.ID || row.Verdict != "ask" || row.User != "ann" {
			t.Errorf("row %d says %+v", row.Seq, row)
		}
	}
}

func TestRejectedCallDoesNotRun(t *testing.T) {
	plugin := &counter{}
	h := newHost(t, pipeline.Options{Runner: plugin}, addSpec())
	f, question := h.begin(t, request("add", `{"text":"a"}`))
	h.answer(t, question.ID, false)
	got := f.Wait(t.Context(), operation.Forever).Result.Error
	if got == nil || got.Code != tool.Rejected || got.Message != "User rejected the operation" || got.Hint != "since I say so" {
		t.Errorf("Wait = %v, want the refusal and its message", got)
	}
	if plugin.calls() != "" {
		t.Errorf("the plugin ran %s", plugin.calls())
	}
	rows := h.rows(t, f.ID(), 1)
	if row := rows[0]; row.Status != "rejected" || row.Approval != question.ID || row.Approver != "ann" || row.Via != "test" || row.ApprovedBy != "" {
		t.Errorf("the journal has %+v, want one end, rejected by ann", rows)
	}
}

// TestApprovalFreesItsOwnCallOnly approves one of two calls that differ in one respect and
// rejects the other. The control approves both. TestAttacks of package approval shows that
// without the binding, one approval would let the other call run.
func TestApprovalFreesItsOwnCallOnly(t *testing.T) {
	other := request("add", `{"text":"b"}`)
	stranger := request("add", `{"text":"a"}`)
	stranger.Caller.Client = "another"
	for _, tt := range []struct {
		name  string
		other pipeline.Request
	}{{"other arguments", other}, {"another client", stranger}} {
		t.Run(tt.name, func(t *testing.T) {
			plugin := &counter{}
			h := newHost(t, pipeline.Options{Runner: plugin}, addSpec())
			first, question := h.begin(t, request("add", `{"text":"a"}`))
			second, otherQuestion := h.begin(t, tt.other)
			if question.ID == otherQuestion.ID {
				t.Fatal("both calls wait for one answer")
			}
			h.answer(t, question.ID, true)
			if got := first.Wait(t.Context(), operation.Forever); got.Result.Error != nil {
				t.Fatal(got.Result.Error)
			}
			if state := h.record(t, otherQuestion.ID).State; state != approval.Open {
				t.Errorf("approving one made the other question %s", state)
			}
			h.answer(t, otherQuestion.ID, false)
			got := second.Wait(t.Context(), operation.Forever).Result.Error
			if got == nil || got.Code != tool.Rejected || plugin.calls() != `{"text":"a"}` {
				t.Errorf("the other call = %v, and %s ran; want it rejected", got, plugin.calls())
			}

			third, thirdQuestion := h.begin(t, tt.other)
			h.answer(t, thirdQuestion.ID, true)
			if got := third.Wait(t.Context(), operation.Forever).Result.Error; got != nil || len(plugin.ran) != 2 {
				t.Errorf("control: the other call approved = %v, and %s ran", got, plugin.calls())
			}
		})
	}
}

// TestChangedStateIsAskedAnew changes the state that the preview showed before the call is
// approved.
func TestChangedStateIsAskedAnew(t *testing.T) {
	plugin := &counter{value: "1"}
	h := newHost(t, pipeline.Options{Runner: plugin}, addSpec())
	f, question := h.begin(t, request("add", `{"text":"a"}`))
	plugin.set("2")
	h.answer(t, question.ID, true)
	again := h.nextQuestion(t)
	if again.Preview.Summary != "adds to 2" || plugin.calls() != "" {
		t.Fatalf("the second question shows %q, and %q ran", again.Preview.Summary, plugin.calls())
	}
	h.answer(t, again.ID, true)
	if got := f.Wait(t.Context(), operation.Forever); got.Result.Error != nil || plugin.calls() != `{"text":"a"}` {
		t.Errorf("Wait = %+v, and %q ran; want one run", got, plugin.calls())
	}
	if first := h.record(t, question.ID); first.State != approval.Spent {
		t.Errorf("the first approval is %s, want it spent", first.State)
	}
	var rows []string
	for _, row := range h.rows(t, f.ID(), 4) {
		rows = append(rows, fmt.Sprintf("%s %s%s", row.Kind, row.Status, row.Code))
	}
	if diff := cmp.Diff([]string{"start ", "end errorconflict", "start ", "end success"}, rows); diff != "" {
		t.Errorf("the rows (-want +got):\n%s", diff)
	}
	t.Run("control", func(t *testing.T) { // without the digest, the call runs on a state that no approver has seen
		plugin := &counter{value: "1"}
		h := newHost(t, pipeline.Options{Runner: withoutDigest{plugin}}, addSpec())
		f, question := h.begin(t, request("add", `{"text":"a"}`))
		plugin.set("2")
		h.answer(t, question.ID, true)
		if got := f.Wait(t.Context(), operation.Forever); got.Result.Error != nil || plugin.calls() == "" {
			t.Errorf("Wait = %+v; the control shows no damage", got)
		}
	})
}

// withoutDigest previews without a digest of the state.
type withoutDigest struct{ *counter }

func (w withoutDigest) Preview(ctx context.Context, plugin, digest string, call tool.Call) (tool.Preview, error) {
	p, err := w.counter.Preview(ctx, plugin, digest, call)
	p.Digest = nil
	return p, err
}

// TestStateThatAlwaysChanges checks that the host does not ask again forever.
func TestStateThatAlwaysChanges(t *testing.T) {
	plugin := &counter{value: "1"}
	h := newHost(t, pipeline.Options{Runner: plugin}, addSpec())
	f, question := h.begin(t, request("add", `{"text":"a"}`))
	for asked := range 3 {
		plugin.set(fmt.Sprint("after ", asked))
		h.answer(t, question.ID, true)
		if asked < 2 {
			question = h.nextQuestion(t)
		}
	}
	got := f.Wait(t.Context(), operation.Forever).Result.Error
	if got == nil || got.Code != tool.Conflict || plugin.calls() != "" {
		t.Errorf("after 3 questions: %v, and %q ran; want %s and no run", got, plugin.calls(), tool.Conflict)
	}
}

// nextQuestion waits for the next question.
func (h *host) nextQuestion(t *testing.T) approval.Record {
	t.Helper()
	select {
	case id := <-h.questions:
		return h.record(t, id)
	case <-t.Context().Done():
		t.Fatal("nobody is asked")
	}
	return approval.Record{}
}

// TestPolicyDecidesAgain changes the policy while a call waits.
func TestPolicyDecidesAgain(t *testing.T) {
	level := func(v policy.Verdict) *policy.Rules {
		return rules(t, policy.Options{Plugins: map[string]policy.Plugin{"test": {Tools: map[string]policy.Level{"add": {Verdict: v}}}}})
	}
	for _, tt := range []struct {
		name string
		next *policy.Rules
		want tool.Code
	}{
		{"the same", level(policy.Ask), ""},
		{"laxer", level(policy.Allow), ""},
		{"a deny", level(policy.Deny), tool.PermissionDenied},
		{"read_only mode", rules(t, policy.Options{Mode: policy.ReadOnly}), tool.PermissionDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plugin := &counter{}
			h := newHost(t, pipeline.Options{Runner: plugin, Policy: level(policy.Ask)}, addSpec())
			f, question := h.begin(t, request("add", `{"text":"a"}`))
			h.Apply(pipeline.Settings{Policy: tt.next})
			h.answer(t, question.ID, true)
			got := f.Wait(t.Context(), operation.Forever).Result.Error
			if (got == nil) != (tt.want == "") || got != nil && got.Code != tt.want || (plugin.calls() == "") != (tt.want != "") {
				t.Errorf("Wait = %v, and %q ran; want code %q", got, plugin.calls(), tt.want)
			}
			if record := h.record(t, question.ID); record.State != approval.Spent {
				t.Errorf("the approval is %s: it could be used once more", record.State)
			}
		})
	}
	t.Run("a confirm in the place of an ask is asked anew", func(t *testing.T) {
		plugin := &counter{}
		h := newHost(t, pipeline.Options{Runner: plugin, Policy: level(policy.Ask)}, addSpec())
		f, question := h.begin(t, request("add", `{"text":"a"}`))
		h.Apply(pipeline.Settings{Policy: level(policy.Confirm)})
		h.answer(t, question.ID, true)
		again := h.nextQuestion(t)
		h.answer(t, again.ID, true)
		if got := f.Wait(t.Context(), operation.Forever); got.Result.Error != nil || again.Verdict != policy.Confirm {
			t.Errorf("Wait = %+v after a question of verdict %v", got, again.Verdict)
		}
	})
}

func TestStandingAnswer(t *testing.T) {
	plugin := &counter{}
	h := newHost(t, pipeline.Options{Runner: plugin}, addSpec())
	f, question := h.begin(t, request("add", `{"text":"a"}`))
	decision := approval.Decision{ID: question.ID, By: approver, Approve: true, Grant: &approval.Terms{}, Via: "test"}
	if _, err := h.opts.Approvals.Decide(t.Context(), seeing(question, decision)); err != nil {
		t.Fatal(err)
	}
	f.Wait(t.Context(), operation.Forever)
	outcome := h.Call(t.Context(), request("add", `{"text":"b"}`))
	if outcome.Result.Error != nil || outcome.Approval != "" {
		t.Fatalf("the second call = %+v, want it to run unasked", outcome)
	}
	rows := h.rows(t, outcome.ID, 2)
	if rows[0].ApprovedBy != "grant" || !strings.HasPrefix(rows[0].Approval, "gr_") {
		t.Errorf("the journal has %+v, want it approved by the grant", rows)
	}
	stranger := request("add", `{"text":"b"}`)
	stranger.Caller.User = "bob"
	h.begin(t, stranger) // must ask: the grant is Ann's
}

// TestRestart stops the host while a question is open. The answer counts once, for the same
// call at the next host.
func TestRestart(t *testing.T) {
	for _, answerFirst := range []bool{false, true} {
		t.Run(fmt.Sprintf("answered before the call: %v", answerFirst), func(t *testing.T) {
			plugin := &counter{value: "1"}
			dir := t.TempDir()
			opts := pipeline.Options{Runner: plugin, Catalog: newCatalog(t, addSpec())}
			first, err := openHost(t.Context(), dir, opts)
			if err != nil {
				t.Fatal(err)
			}
			f := first.Start(t.Context(), request("add", `{"text":"a"}`))
			id := f.Wait(t.Context(), 0).Approval
			first.stop()
			if got := f.Wait(t.Context(), operation.Forever).Result.Error; got == nil || got.Code != tool.Unavailable {
				t.Errorf("the call of the first host ended with %v, want %s", got, tool.Unavailable)
			}
			f.Release()

			second, err := openHost(t.Context(), dir, opts)
			if err != nil {
				t.Fatal(err)
			}
			defer second.stop()
			if answerFirst {
				second.answer(t, id, true)
			}
			f = second.Start(t.Context(), request("add", `{"text":"a"}`))
			defer f.Release()
			if !answerFirst {
				if got := f.Wait(t.Context(), 0).Approval; got != id {
					t.Fatalf("the call asks %s, want the open %s", got, id)
				}
				second.answer(t, id, true)
			}
			if got := f.Wait(t.Context(), operation.Forever); got.Result.Error != nil || plugin.calls() != `{"text":"a"}` {
				t.Fatalf("Wait = %+v, and %q ran", got, plugin.calls())
			}
			if _, again := second.begin(t, request("add", `{"text":"a"}`)); again.ID == id {
				t.Error("the same call made once more uses the approval again")
			}
		})
	}
}

// TestCallerGivesUpTheQuestion cancels a call that waits for a person.
func TestCallerGivesUpTheQuestion(t *testing.T) {
	plugin := &counter{}
	h := newHost(t, pipeline.Options{Runner: plugin}, addSpec())
	f, question := h.begin(t, request("add", `{"text":"a"}`))
	f.Cancel()
	if got := f.Wait(t.Context(), operation.Forever).Result.Error; got == nil || got.Code != tool.Canceled {
		t.Errorf("Wait = %v, want %s", got, tool.Canceled)
	}
	decision := approval.Decision{ID: question.ID, By: approver, Approve: true, Via: "test"}
	if _, err := h.opts.Approvals.Decide(t.Context(), seeing(question, decision)); err == nil {
		t.Error("a question of a caller that gave up can be answered")
	}
	if plugin.calls() != "" {
		t.Errorf("the plugin ran %s", plugin.calls())
	}
}

// TestNothingRunsUnrecorded checks that a call does not run if the journal cannot record it.
func TestNothingRunsUnrecorded(t *testing.T) {
	plugin := &counter{}
	allow := policy.Options{Plugins: map[string]policy.Plugin{"test": {Tools: map[string]policy.Level{"add": {Verdict: policy.Allow}}}}}
	h := newHost(t, pipeline.Options{Runner: plugin, Policy: rules(t, allow)}, addSpec(), echoSpec())
	if err := h.opts.Store.Close(); err != nil {
		t.Fatal(err)
	}
	got := h.Call(t.Context(), request("add", `{"text":"a"}`)).Result.Error
	if got == nil || got.Code != tool.Unavailable || plugin.calls() != "" {
		t.Errorf("add = %v, and %q ran; want %s and no run", got, plugin.calls(), tool.Unavailable)
	}
	if got := h.Call(t.Context(), request("echo", `{"text":"a"}`)).Result.Error; got != nil {
		t.Errorf("a call that changes nothing fails: %v", got)
	}
}

// TestImpossibleCallIsNotAsked checks that the host asks no person about a call if the plugin
// reports that it cannot succeed.
func TestImpossibleCallIsNotAsked(t *testing.T) {
	h := newHost(t, pipeline.Options{Runner: fakeRunner{preview: func(context.Context, tool.Call) (tool.Preview, error) {
		return tool.Preview{}, tool.Errorf(tool.NotFound, "File not found: a")
	}}}, addSpec())
	got := h.Call(t.Context(), request("add", `{"text":"a"}`)).Result.Error
	if got == nil || got.Code != tool.NotFound || got.Message != "File not found: a" {
		t.Errorf("Call = %v, want the plugin's error", got)
	}
}

func TestExplain(t *testing.T) {
	h := newHost(t, pipeline.Options{Runner: &counter{}}, addSpec())
	got, err := h.Explain(request("add", `{"times":"2","text":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Verdict != policy.Ask || got.Tool != "add" || got.Plugin != "test" || got.Tier != tool.SideEffecting ||
		string(got.Arguments) != `{"text":"a","times":2}` || len(got.Repairs) != 1 || got.Change == "" {
		t.Errorf("Explain = %+v", got)
	}
	if _, err := h.Explain(request("ad", `{}`)); err == nil {
		t.Error("Explain explains a tool that does not exist")
	}
	if open, err := h.opts.Approvals.List(t.Context(), approval.Filter{By: approver}); err != nil || len(open) != 0 {
		t.Errorf("Explain asked %v, %v", open, err)
	}
}

func rules(tb testing.TB, opts policy.Options) *policy.Rules {
	tb.Helper()
	r, err := policy.New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}
