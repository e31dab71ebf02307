package hosttools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/hosttools"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/call/results"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// host is a pipeline with the host's own tools and one plugin, over the real parts. The plugin
// has three tools: "add" changes something and runs the test's function, "look" runs the same
// function and changes nothing, "tell" takes a secret.
type host struct {
	*pipeline.Pipeline

	approvals *approval.Service
	journal   *journal.Journal
	events    *event.Bus
	questions chan string
	own       *hosttools.Tools
	stop      func()
	patience  time.Duration

	mu  sync.Mutex // guards ran
	ran []tool.Call
	run func(ctx context.Context, call tool.Call, sink tool.Sink) (tool.Result, error)
}

var ann = auth.Caller{User: "ann", Client: "test", Session: "s1", Roles: auth.Agent}

// options configure a host.
type options struct {
	dir      string
	patience time.Duration // 0: a minute
	mode     policy.Mode
	run      func(ctx context.Context, call tool.Call, sink tool.Sink) (tool.Result, error)
}

func open(t *testing.T, opts options) *host {
	t.Helper()
	if opts.dir == "" {
		opts.dir = t.TempDir()
	}
	if opts.patience == 0 {
		opts.patience = time.Minute
	}
	ctx := context.WithoutCancel(t.Context())
	h := &host{events: event.NewBus(), questions: make(chan string, 100), run: opts.run, patience: opts.patience}
	db, err := store.Open(ctx, store.Options{Dir: opts.dir})
	must(t, err)
	h.journal, err = journal.Open(ctx, journal.Options{Store: db, KeyPath: filepath.Join(opts.dir, "journal.key"), MaxLag: time.Millisecond})
	must(t, err)
	grants, err := approval.NewGrants(ctx, approval.GrantOptions{Store: db})
	must(t, err)
	h.approvals, err = approval.New(ctx, approval.Options{Store: db, Grants: grants, Changed: func(r approval.Record) {
		if r.State == approval.Open {
			h.questions <- r.ID
		}
	}})
	must(t, err)
	kept, err := results.Open(results.Options{Path: filepath.Join(opts.dir, "results")})
	must(t, err)
	rules, err := policy.New(policy.Options{Mode: opts.mode})
	must(t, err)
	tools := newCatalog(t, opts.patience)
	stops, err := killswitch.New(ctx, db)
	must(t, err)
	h.Pipeline, err = pipeline.New(pipeline.Options{
		Stops:   stops,
		Catalog: tools, Runner: h, Policy: rules, Approvals: h.approvals, Grants: grants,
		Journal: h.journal, Store: db, Results: kept, Events: h.events,
	})
	must(t, err)
	h.own, err = hosttools.New(hosttools.Options{Pipeline: h.Pipeline, Catalog: tools, Approvals: h.approvals, Results: kept, Patience: opts.patience})
	must(t, err)
	h.stop = sync.OnceFunc(func() {
		_ = h.Close()
		_ = h.approvals.Close()
		_ = grants.Close()
		_ = kept.Close()
		_ = h.journal.Close(ctx)
		_ = db.Close()
	})
	t.Cleanup(h.stop)
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newCatalog(t *testing.T, patience time.Duration) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(catalog.Options{Plugins: []catalog.Plugin{
		hosttools.Plugin(patience), {Name: "test", Ceiling: tool.SideEffecting, TrustClaims: true},
	}})
	must(t, err)
	must(t, c.Publish(catalog.HostPlugin, "host", hosttools.Specs()))
	schema := func(role string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"any text"` + role + `}}}`)
	}
	must(t, c.Publish("test", "digest", []tool.Spec{
		{Name: "add", Description: "Adds a text.", Tier: tool.SideEffecting, InputSchema: schema(""), MaxOutput: 64 * tool.KiB},
		{Name: "look", Description: "Looks.", Tier: tool.ReadOnly, InputSchema: schema("")},
		{Name: "tell", Description: "Tells a secret.", Tier: tool.SideEffecting, InputSchema: schema(`,"x-role":"secret"`)},
	}))
	if refused := c.Refused(); len(refused) > 0 {
		t.Fatalf("refused: %v", refused)
	}
	return c
}

// Run implements [pipeline.Runner].
func (h *host) Run(ctx context.Context, plugin, digest string, call tool.Call, sink tool.Sink) (tool.Result, bool, error) {
	if plugin == catalog.HostPlugin {
		return h.own.Run(ctx, plugin, digest, call, sink)
	}
	h.mu.Lock()
	h.ran = append(h.ran, call)
	h.mu.Unlock()
	if h.run != nil {
		result, err := h.run(ctx, call, sink)
		return result, true, err
	}
	return tool.TextResult("added " + string(call.Arguments)), true, nil
}

// Preview implements [pipeline.Runner].
func (h *host) Preview(ctx context.Context, plugin, digest string, call tool.Call) (tool.Preview, error) {
	return h.own.Preview(ctx, plugin, digest, call)
}

// calls returns how many calls have reached the plugin.
func (h *host) calls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ran)
}

func request(by auth.Caller, name string, arguments map[string]any) pipeline.Request {
	text, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return pipeline.Request{Caller: by, Tool: name, Arguments: text}
}

// bounded returns a context that expires long after the event that a test waits for.
func (h *host) bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), h.patience+10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// call makes a call and waits for its result.
func (h *host) call(t *testing.T, by auth.Caller, name string, arguments map[string]any) operation.Outcome {
	t.Helper()
	return h.Call(h.bounded(t), request(by, name, arguments))
}

// result waits for the result of a call.
func (h *host) result(t *testing.T, f *operation.Operation) tool.Result {
	t.Helper()
	outcome := f.Wait(h.bounded(t), operation.Forever)
	if outcome.Pending {
		t.Fatalf("the call %s still waits", f.ID())
	}
	return outcome.Result
}

func (h *host) wait(t *testing.T, by auth.Caller, id string) tool.Result {
	t.Helper()
	return h.call(t, by, catalog.CallWait, map[string]any{"id": id}).Result
}

// ask makes a call that needs approval, from a client without patience. It returns the ids of
// the call and the question.
func (h *host) ask(t *testing.T, name, text string) (call, question string) {
	t.Helper()
	f := h.Start(t.Context(), request(ann, name, map[string]any{"text": text}))
	defer f.Release()
	select {
	case question = <-h.questions:
	case <-h.bounded(t).Done():
		t.Fatalf("nobody is asked about %s", name)
	}
	if outcome := f.Wait(t.Context(), 0); !outcome.Pending || outcome.Approval != question {
		t.Fatalf("the call is %+v, want it to wait for %s", outcome, question)
	}
	f.KeepForRetry()
	return f.ID(), question
}

// decide answers a question.
func (h *host) decide(t *testing.T, id string, approve bool, message string) {
	t.Helper()
	record, err := h.approvals.Get(t.Context(), id)
	must(t, err)
	_, err = h.approvals.Decide(t.Context(), approval.Decision{
		ArgumentsHash: record.ArgumentsHash, PreviewDigest: record.PreviewDigest,
		ID: id, By: auth.Caller{User: "ann", Roles: auth.Approver}, Approve: approve, Message: message, Via: "cli",
	})
	must(t, err)
}

// wantError checks the code of an error and that its text contains some phrases.
func wantError(t *testing.T, what string, got *tool.Error, code tool.Code, says ...string) {
	t.Helper()
	if got == nil || got.Code != code {
		t.Errorf("%s = %v, want %s", what, got, code)
		return
	}
	for _, want := range says {
		if text := got.Message + "\n" + got.Hint; !strings.Contains(text, want) {
			t.Errorf("%s says %q, want %q in it", what, text, want)
		}
	}
}

func readOn(handle string, cursor int) string {
	return fmt.Sprintf(`result_read {"handle":%q,"cursor":%d}`, handle, cursor)
}

// rows returns the journal's records of finished calls of a tool. The journal may lag.
func (h *host) rows(t *testing.T, name string) (rows []journal.Record) {
	t.Helper()
	eventually(t, "the journal has the call", func() bool {
		var err error
		rows, err = h.journal.Query(t.Context(), journal.Query{Tool: name})
		must(t, err)
		return len(rows) > 0
	})
	return rows
}

// eventually waits until done returns true, for at most a minute.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("still not: %s", what)
		}
	}
}
