// Package pipeline takes a call from request to result: it looks up the tool,
// checks and repairs the arguments, applies the rate limits, lets policy and
// people decide, records the start, executes the call, truncates the result and
// records the end. All calls of all front ends go through it; there is no other
// way in.
//
// The steps are in call.go, in the order that the host's security depends on. A call is an
// [operation.Operation], which outlives the request that started it.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
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

// Options configure a [Pipeline].
type Options struct {
	// Catalog holds the tools. Required.
	Catalog *catalog.Catalog
	// Runner sends the calls to the plugins. Required.
	Runner Runner
	// Policy decides about the calls; [Pipeline.Apply] replaces it. Required.
	Policy *policy.Rules
	// Approvals asks people. Required.
	Approvals *approval.Service
	// Grants holds the standing answers. Required.
	Grants *approval.Grants
	// Journal records the calls. Required.
	Journal *journal.Journal
	// Store keeps the results of calls with an idempotency key. Required.
	Store *store.Store
	// Results keeps results that are too long for their callers. If nil, the part beyond the
	// limit is lost.
	Results *results.Dir
	// Stops holds the stops of admins. Required.
	Stops *killswitch.Switch
	// Events publishes what happens. Required.
	Events *event.Bus
	// Logger receives the causes that callers do not see; nil means no log.
	Logger hclog.Logger
	// Redact returns a text without secrets. Texts that are cut pass through it first: the
	// journal, which redacts too, would not find a part of a secret. nil returns the text.
	Redact func(text string) string
	// Hide returns a text of a user's call without the secrets that the user has set. nil returns the
	// text.
	Hide func(user, text string) string
	// Full returns why the workspace of a user is full, or "". Then a person confirms each call that
	// may change something in it. It must return at once. nil means that none is full.
	Full func(user string) (why string)
	// BrokenClaim is told of a call of tier read_only that failed in a process that can change nothing,
	// with the sign that it tried to. It must return at once. nil means that nobody is told.
	BrokenClaim func(plugin, tool, sign string)
	// Observe is told how long the steps of a call took. A result that is returned again, of an earlier
	// call or of one under way, is not observed. It must return at once. nil means that nothing is
	// observed.
	Observe func(step Step, call Observed, took time.Duration)
	// Roots, Own and ActionsPerHour are as in [Settings].
	Roots          []string
	Own            func(user string) (dir string, err error)
	ActionsPerHour int
	// Keep is how long an operation without holders continues, and how long its result is kept
	// afterwards; 0 means 10 minutes.
	Keep time.Duration
	// PluginConcurrency bounds the concurrent calls of one plugin, or of one user if each has
	// processes of the plugin; 0 means 64.
	PluginConcurrency int
	// MaxWaiting bounds the calls of one user that wait for one plugin, one tool or one other
	// call; 0 means 256. Of all users, 4 times as many may wait. Further calls are refused.
	MaxWaiting int
	// MaxWait bounds how long a call waits for its turn; 0 means 30 seconds.
	MaxWait time.Duration
	// AnswerTimeout bounds how long a tool's question waits for its answer; 0
	// means 10 minutes.
	AnswerTimeout time.Duration
}

// Pipeline executes calls. Its methods may be called from any goroutine.
type Pipeline struct {
	opts       Options
	settings   atomic.Pointer[Settings]
	operations *operation.Registry
	order      order
	slots      slots
	buckets    buckets
	cache      cache
	busy       busy
	refusals   refusals
	advance    advance
	forgers    sync.Map // keyed by program: forged metadata was logged
}

// Runner sends calls to the plugins that own the tools.
type Runner interface {
	// Run executes the call and returns the tool's result, or an error if there
	// is none: a [*tool.Error] for the caller, or any other error for the log.
	// When ctx ends, Run tells the tool to stop and returns at once.
	//
	// digest identifies the program that the call was checked against. If the plugin now runs
	// another one, the call is not sent.
	//
	// sent reports whether the tool may have seen the call. If not, the call can safely be
	// repeated.
	Run(ctx context.Context, plugin, digest string, call tool.Call, sink tool.Sink) (result tool.Result, sent bool, err error)
	// Preview returns what the call would do, without doing it. It returns the same errors as
	// Run; an error of the tool itself means that the call cannot succeed.
	Preview(ctx context.Context, plugin, digest string, call tool.Call) (tool.Preview, error)
}

// Hider is a [Runner] that knows which plugins' processes may see forbidden files.
type Hider interface {
	// Unhidden reports whether programs that the plugin executes may see forbidden
	// files: the plugin's, or those of the user or session if they have processes of their own.
	// Run sends such a plugin only calls that a person has approved.
	Unhidden(plugin, user, session string) bool
}

// unhidden reports whether a person must approve a call because its plugin may see
// forbidden files.
func (p *Pipeline) unhidden(c *call) bool {
	hider, ok := p.opts.Runner.(Hider)
	return ok && hider.Unhidden(c.entry.Plugin, c.Caller.User, c.Caller.Session)
}

// New returns a pipeline, or an error that names the missing option. The caller must close it.
func New(opts Options) (*Pipeline, error) {
	for _, required := range []struct {
		name    string
		missing bool
	}{
		{"catalog", opts.Catalog == nil},
		{"runner", opts.Runner == nil},
		{"policy", opts.Policy == nil},
		{"approvals", opts.Approvals == nil},
		{"grants", opts.Grants == nil},
		{"journal", opts.Journal == nil},
		{"store", opts.Store == nil},
		{"stops", opts.Stops == nil},
		{"events", opts.Events == nil},
	} {
		if required.missing {
			return nil, fmt.Errorf("pipeline: the option %s is required", required.name)
		}
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
	}
	if opts.Redact == nil {
		opts.Redact = func(text string) string { return text }
	}
	if opts.Full == nil {
		opts.Full = func(string) string { return "" }
	}
	if opts.BrokenClaim == nil {
		opts.BrokenClaim = func(_, _, _ string) {}
	}
	if opts.Hide == nil {
		opts.Hide = func(_, text string) string { return text }
	}
	if opts.Keep <= 0 {
		opts.Keep = 10 * time.Minute
	}
	if opts.PluginConcurrency <= 0 {
		opts.PluginConcurrency = 64
	}
	if opts.MaxWaiting <= 0 {
		opts.MaxWaiting = 256
	}
	if opts.MaxWait <= 0 {
		opts.MaxWait = 30 * time.Second
	}
	if opts.AnswerTimeout <= 0 {
		opts.AnswerTimeout = 10 * time.Minute
	}
	p := &Pipeline{
		opts:       opts,
		operations: operation.NewRegistry(opts.Keep),
		slots:      slots{queues: make(map[slotKey]*queue)},
		buckets:    buckets{all: make(map[bucketKey]*bucket)},
		cache:      newCache(),
		busy:       busy{calls: make(map[session]int)},
	}
	p.Apply(Settings{Policy: opts.Policy, Roots: opts.Roots, Own: opts.Own, ActionsPerHour: opts.ActionsPerHour})
	return p, nil
}

// Drain refuses new calls and calls that have not begun, with an error that begins with
// [operation.Stopping]. It returns when all others have ended or ctx ends; Close cancels the
// rest.
func (p *Pipeline) Drain(ctx context.Context) { p.operations.Drain(ctx) }

// Close cancels all calls and returns when they have ended. Questions to people stay open: the
// same call at the next host finds the answer.
func (p *Pipeline) Close() error {
	p.operations.Close()
	return nil
}

// Operations returns the registry of the calls in progress.
func (p *Pipeline) Operations() *operation.Registry { return p.operations }

// Request is a call as a front end received it.
type Request struct {
	// Caller is the owner of the request's credential.
	Caller auth.Caller
	// Tool is a tool's name or alias.
	Tool string
	// Arguments is the JSON text as received; empty means no arguments.
	Arguments []byte
	// Sink receives progress and output while the operation has holders, which may be longer
	// than the request.
	Sink tool.Sink
	// Attended reports that the caller passes the tool's questions on to the user, until it
	// calls [operation.Operation.Leave]. If no holder does, the tool receives an error instead
	// of an answer.
	Attended bool
	// Traceparent is a W3C Trace Context, or "".
	Traceparent string
	// IdempotencyKey makes equal calls within a day take effect only once; at most 200 bytes.
	// With "", each request is a separate call.
	IdempotencyKey string
	// Context is what the agent says about the call, for people: why it makes the call. At most
	// 500 characters are kept, with a mark of the cut. It is shown and recorded as the agent's
	// words, and decides nothing.
	Context string
	// Presentation is the form of the result.
	Presentation Presentation
}

// Start starts a call and returns at once. The end of ctx does not end the call. The caller
// must release the operation.
func (p *Pipeline) Start(ctx context.Context, req Request) *operation.Operation {
	c := &call{Request: p.Unwrap(req), id: newCallID(), started: time.Now()}
	c.Context = approval.ShortContext(p.hide(c, c.Context)) // a part of a secret would not be found
	return p.operations.Start(ctx, operation.Call{
		ID: c.id, Tool: c.Tool, Caller: c.Caller, Started: c.started, Sink: c.Sink, Attended: c.Attended,
	}, func(ctx context.Context, o *operation.Operation) (operation.Outcome, *operation.Operation) {
		c.operation = o
		return p.run(ctx, c)
	})
}

// Call executes one call and waits for its outcome, which is never pending. That includes the
// wait for a person. The end of ctx cancels the call unless others wait for it.
func (p *Pipeline) Call(ctx context.Context, req Request) operation.Outcome {
	o := p.Start(ctx, req)
	defer o.Release()
	return o.WaitOrCancel(ctx)
}

// run executes a call and returns its outcome, or the operation that it joins. A panic while
// ending the call ends only that call.
func (p *Pipeline) run(ctx context.Context, c *call) (outcome operation.Outcome, joined *operation.Operation) {
	defer func() {
		if value := recover(); value != nil {
			p.opts.Logger.Error("panic at the end of a call", "call", c.id, "panic", value, "stack", string(debug.Stack()))
			p.operations.Unclaim(c.operation, c.IdempotencyKey)
			outcome = operation.Outcome{ID: c.id, Tool: c.Tool, Result: tool.ErrorResult(p.callerError(c, errPanic))}
			joined = nil
		}
	}()
	if errors.Is(context.Cause(ctx), operation.ErrStopping) {
		return p.finish(ctx, c, tool.Result{}, operation.ErrStopping), nil
	}
	result, err := p.rounds(ctx, c)
	if join, ok := errors.AsType[*joinError](err); ok {
		return operation.Outcome{}, join.operation
	}
	return p.finish(ctx, c, result, err), nil
}

// newCallID returns an id that sorts by time.
func newCallID() string { return "tc_" + uuid.Must(uuid.NewV7()).String() }
