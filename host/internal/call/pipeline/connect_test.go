package pipeline_test

import (
	"context"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/sdk/tool"
)

// connector is a plugin whose calls make the connections that the test asks for, until it ends them.
type connector struct {
	calls chan *connecting // that have begun
}

// connecting is a call that makes connections.
type connecting struct {
	sink tool.Sink
	end  func(tool.Result)
}

func newConnector() *connector { return &connector{calls: make(chan *connecting, 16)} }

// Run implements [pipeline.Runner].
func (c *connector) Run(ctx context.Context, _, _ string, _ tool.Call, sink tool.Sink) (tool.Result, bool, error) {
	results := make(chan tool.Result, 1)
	c.calls <- &connecting{sink, func(result tool.Result) { results <- result }}
	select {
	case result := <-results:
		return result, true, nil
	case <-ctx.Done():
		return tool.Result{}, true, ctx.Err()
	}
}

// Preview implements [pipeline.Runner].
func (c *connector) Preview(context.Context, string, string, tool.Call) (tool.Preview, error) {
	return tool.Preview{}, tool.Errorf(tool.NotFound, "no preview")
}

// online starts a call of a host that may make connections.
func (h *host) online(t *testing.T, plugin *connector, req pipeline.Request) (*operation.Operation, *connecting) {
	t.Helper()
	f := h.Start(t.Context(), req)
	t.Cleanup(f.Release)
	select {
	case call := <-plugin.calls:
		return f, call
	case <-t.Context().Done():
	}
	t.Fatal("the call does not begin")
	return nil, nil
}

// decided is what a connection got.
type decided struct {
	permission tool.Permission
	err        *tool.Error
}

func (d decided) String() string {
	if d.err != nil {
		return string(d.err.Code) + ": " + d.err.Message
	}
	return "allowed by " + d.permission.By
}

// to begins a connection of a call that is not listed, and returns what it gets.
func (c *connecting) to(ctx context.Context, host string) <-chan decided {
	got := make(chan decided, 1)
	go func() { // ends with the answer, or with ctx
		permission, err := c.sink.Connect(ctx, tool.Destination{Host: host, Port: 443}, true)
		got <- decided{permission, err}
	}()
	return got
}

// decide answers a question as its approver.
func (h *host) decide(t *testing.T, question approval.Record, approve bool, terms *approval.Terms) {
	t.Helper()
	decision := approval.Decision{ID: question.ID, By: approver, Approve: approve, Grant: terms, Message: "since I say so", Via: "test"}
	if _, err := h.opts.Approvals.Decide(t.Context(), seeing(question, decision)); err != nil {
		t.Fatal(err)
	}
}

// unasked reports that no question waits.
func (h *host) unasked(t *testing.T) {
	t.Helper()
	select {
	case id := <-h.questions:
		t.Errorf("a person is asked again: %+v", h.record(t, id))
	default:
	}
}

func newOnline(t *testing.T) (*host, *connector) {
	t.Helper()
	plugin := newConnector()
	second := echoSpec()
	second.Name, second.Aliases = "other", nil
	return newHost(t, pipeline.Options{Runner: plugin}, echoSpec(), second), plugin
}

// TestConnectionIsAsked asks a person about a host once for a call, also if many connections are
// made at once, and about each host by itself. The answer holds for the call, and for no other.
func TestConnectionIsAsked(t *testing.T) {
	h, plugin := newOnline(t)
	f, call := h.online(t, plugin, request("echo", `{"text":"a"}`))
	var all []<-chan decided
	for range 20 {
		all = append(all, call.to(t.Context(), "example.com"))
	}
	q := h.nextQuestion(t)
	if q.Tool != approval.Connect || q.Plugin != "test" || q.Subject.Host != "example.com:443" || q.User != "ann" || q.Session != "s1" || q.Call != f.ID() ||
		string(q.Arguments) != `{"host":"example.com","port":443}` || q.Preview == nil || q.Preview.Summary != "echo wants to connect to example.com:443" {
		t.Errorf("the question is %+v", q)
	}
	h.waiting(t, f)
	h.decide(t, q, true, nil)
	for i, got := range all {
		if d := <-got; d.err != nil || d.permission != (tool.Permission{By: "user", Approval: q.ID, Approver: approver.User}) {
			t.Errorf("connection %d gets %v, %+v", i, d, d.permission)
		}
	}
	h.unasked(t)
	if state := f.Info().State; state == operation.AwaitingApproval {
		t.Errorf("the call is %s after the answer", state)
	}
	other := call.to(t.Context(), "other.example")
	h.decide(t, h.nextQuestion(t), false, nil)
	if d := <-other; d.err == nil || d.err.Code != tool.Rejected || !strings.HasPrefix(d.err.Message, "no connection to other.example:443: ") || d.err.Hint != "since I say so" {
		t.Errorf("a rejected connection gets %v", d)
	}
	if d := <-call.to(t.Context(), "other.example"); d.err == nil || d.err.Code != tool.Rejected {
		t.Errorf("the next connection to a rejected host gets %v", d)
	}
	h.unasked(t)
	call.end(tool.TextResult("done"))
	result := f.Wait(t.Context(), operation.Forever).Result
	if text := result.Text(); !strings.Contains(text, "the network refused connections of this call: other.example:443 (") || strings.Contains(text, "example.com") {
		t.Errorf("the result is %q, want it to name the refused host alone", text)
	}
	if row := h.rows(t, f.ID(), 1)[0]; row.Kind != journal.End || row.Approval != "" {
		t.Errorf("the row of the call is %+v", row)
	}
	f, call = h.online(t, plugin, request("echo", `{"text":"b"}`))
	for _, host := range []string{"example.com", "other.example"} {
		got := call.to(t.Context(), host)
		h.decide(t, h.nextQuestion(t), true, nil)
		if d := <-got; d.err != nil {
			t.Errorf("%s of the next call gets %v", host, d)
		}
	}
	call.end(tool.TextResult("done"))
	if text := f.Wait(t.Context(), operation.Forever).Result.Text(); text != "done" {
		t.Errorf("the result is %q", text)
	}
}

// TestDeniedConnectionIsNoted: what the configuration denies is not asked about, and the caller
// learns it.
func TestDeniedConnectionIsNoted(t *testing.T) {
	for _, failed := range []bool{false, true} {
		h, plugin := newOnline(t)
		f, call := h.online(t, plugin, request("echo", `{"text":"a"}`))
		for range 20 {
			if _, err := call.sink.Connect(t.Context(), tool.Destination{Host: "evil.example", Port: 80, Reason: "the configuration denies it"}, false); err != nil {
				t.Error(err)
			}
		}
		h.unasked(t)
		result := tool.TextResult("done")
		if failed {
			result = tool.ErrorResult(tool.Errorf(tool.Unavailable, "no route"))
		}
		call.end(result)
		outcome := f.Wait(t.Context(), operation.Forever)
		text := outcome.Result.Text()
		if failed {
			text = outcome.Result.Error.Hint
		}
		if strings.Count(text, "evil.example:80 (the configuration denies it)") != 1 {
			t.Errorf("the caller reads %q, want the host once", text)
		}
	}
}

// TestConnectionIsGivenUp: the client of a connection goes, and another connection to the same host
// finds the same question, or its answer.
func TestConnectionIsGivenUp(t *testing.T) {
	for _, answered := range []bool{false, true} {
		t.Run(map[bool]string{true: "answered while no connection waits", false: "answered later"}[answered], func(t *testing.T) {
			h, plugin := newOnline(t)
			f, call := h.online(t, plugin, request("echo", `{"text":"a"}`))
			ctx, gone := context.WithCancel(t.Context())
			first := call.to(ctx, "example.com")
			q := h.nextQuestion(t)
			gone()
			if d := <-first; d.err == nil || d.err.Code != tool.Canceled {
				t.Errorf("the connection gets %v", d)
			}
			if state := h.record(t, q.ID).State; state != approval.Open {
				t.Fatalf("the question is %s", state)
			}
			if answered {
				h.decide(t, q, true, nil)
			}
			second := call.to(t.Context(), "example.com")
			if !answered {
				h.waiting(t, f)
				h.decide(t, q, true, nil)
			}
			if d := <-second; d.err != nil || d.permission.Approval != q.ID {
				t.Errorf("the next connection gets %v, %+v", d, d.permission)
			}
			h.unasked(t)
			call.end(tool.TextResult("done"))
			if text := f.Wait(t.Context(), operation.Forever).Result.Text(); text != "done" {
				t.Errorf("the result is %q, want no word of a connection that was made at last", text)
			}
		})
	}
	t.Run("rejected while no connection waits", func(t *testing.T) {
		h, plugin := newOnline(t)
		_, call := h.online(t, plugin, request("echo", `{"text":"a"}`))
		ctx, gone := context.WithCancel(t.Context())
		first := call.to(ctx, "example.com")
		q := h.nextQuestion(t)
		gone()
		<-first
		h.decide(t, q, false, nil)
		if d := <-call.to(t.Context(), "example.com"); d.err == nil || d.err.Code != tool.Rejected {
			t.Errorf("the next connection gets %v", d)
		}
		h.unasked(t)
		call.end(tool.TextResult("done"))
	})
}

// waiting waits until a call waits for a person.
func (h *host) waiting(t *testing.T, f *operation.Operation) {
	t.Helper()
	outcome := f.Wait(t.Context(), 0)
	if !outcome.Pending || outcome.Approval == "" {
		t.Fatalf("Wait = %+v, want it to wait for a person", outcome)
	}
}

// TestConnectionEndsWithItsCall: the end of a call cancels its questions, and that of the host does
// not.
func TestConnectionEndsWithItsCall(t *testing.T) {
	t.Run("the call ends", func(t *testing.T) {
		h, plugin := newOnline(t)
		f, call := h.online(t, plugin, request("echo", `{"text":"a"}`))
		ctx, gone := context.WithCancel(t.Context())
		got := call.to(ctx, "example.com")
		q := h.nextQuestion(t)
		gone() // the program has given up, and so does its call
		<-got
		call.end(tool.TextResult("done"))
		f.Wait(t.Context(), operation.Forever)
		if state := h.record(t, q.ID).State; state != approval.Canceled {
			t.Errorf("the question is %s, want %s", state, approval.Canceled)
		}
	})
	t.Run("the caller cancels", func(t *testing.T) {
		h, plugin := newOnline(t)
		f, call := h.online(t, plugin, request("echo", `{"text":"a"}`))
		ctx, gone := context.WithCancel(t.Context()) // package process ends it with the call
		got := call.to(ctx, "example.com")
		q := h.nextQuestion(t)
		f.Cancel()
		f.Wait(t.Context(), operation.Forever)
		gone()
		if d := <-got; d.err == nil {
			t.Errorf("the connection gets %v", d)
		}
		if state := h.record(t, q.ID).State; state != approval.Canceled {
			t.Errorf("the question is %s, want %s", state, approval.Canceled)
		}
	})
	t.Run("the host stops", func(t *testing.T) {
		dir := t.TempDir()
		plugin := newConnector()
		opts := pipeline.Options{Runner: plugin, Catalog: newCatalog(t, echoSpec())}
		first, err := openHost(t.Context(), dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		f, call := first.online(t, plugin, request("echo", `{"text":"a"}`))
		ctx, gone := context.WithCancel(t.Context())
		got := call.to(ctx, "example.com")
		q := first.nextQuestion(t)
		stopped := make(chan struct{})
		go func() { // ends with the host
			first.stop()
			close(stopped)
		}()
		f.Wait(t.Context(), operation.Forever)
		gone()
		<-got
		<-stopped
		second, err := openHost(t.Context(), dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer second.stop()
		if state := second.record(t, q.ID).State; state != approval.Open {
			t.Fatalf("the question is %s, want it to be left", state)
		}
		second.decide(t, second.record(t, q.ID), true, nil)
		f, call = second.online(t, plugin, request("echo", `{"text":"a"}`))
		if d := <-call.to(t.Context(), "example.com"); d.err != nil || d.permission.Approval != q.ID {
			t.Errorf("the connection of the next host gets %v", d)
		}
		call.end(tool.TextResult("done"))
		f.Wait(t.Context(), operation.Forever)
	})
}

// TestQuestionOfTwoCalls: a question that one call has left and another waits for does not end with
// the first.
func TestQuestionOfTwoCalls(t *testing.T) {
	h, plugin := newOnline(t)
	f, first := h.online(t, plugin, request("echo", `{"text":"a"}`))
	ctx, gone := context.WithCancel(t.Context())
	got := first.to(ctx, "example.com")
	q := h.nextQuestion(t)
	gone()
	<-got
	g, second := h.online(t, plugin, request("echo", `{"text":"b"}`))
	got = second.to(t.Context(), "example.com")
	h.waiting(t, g)
	first.end(tool.TextResult("done"))
	f.Wait(t.Context(), operation.Forever)
	if state := h.record(t, q.ID).State; state != approval.Open {
		t.Errorf("the question is %s, although a call waits for it", state)
	} else {
		h.decide(t, q, true, nil)
	}
	if d := <-got; d.err != nil {
		t.Errorf("the connection of the second call gets %v", d)
	}
	second.end(tool.TextResult("done"))
	g.Wait(t.Context(), operation.Forever)
}
