// Package pipeline takes a call from its request to its result: it looks the
// tool up, checks and repairs the arguments, admits the call, lets policy and
// people decide, records its start, runs it, bounds what comes back and records
// how it ended. Every call of every front end goes through it; there is no
// other way in.
//
// A call is a [Flight], which outlives the request that began it. The steps are
// in call.go, in the order that the security of the host rests on.
package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/results"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/links"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/state/store"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Options are what a Pipeline needs.
type Options struct {
	// Catalog knows the tools. Required.
	Catalog *catalog.Catalog
	// Runner carries the calls. Required.
	Runner Runner
	// Policy decides about the calls; [Pipeline.Apply] replaces it. Required.
	Policy *policy.Rules
	// Desk asks people. Required.
	Desk *approval.Desk
	// Grants are the standing answers. Required.
	Grants *approval.Grants
	// Journal records the calls. Required.
	Journal *journal.Journal
	// Store keeps the results of calls with an idempotency key. Required.
	Store *store.Store
	// Results keeps whole results that are too long for their callers; nil means
	// that nothing is kept of what is cut.
	Results *results.Dir
	// Events tells whoever watches. Required.
	Events *event.Bus
	// Logger gets the causes that callers do not see; nil means none.
	Logger hclog.Logger
	// Roots are the directories that callers may work in, the first one being
	// what relative paths are relative to.
	Roots []string
	// ActionsPerHour bounds the calls of one user that change something; 0
	// means no bound.
	ActionsPerHour int
	// Keep is how long a flight that nobody holds goes on, and how long the
	// result of one is kept; 0 means 10 minutes.
	Keep time.Duration
	// PluginConcurrency bounds the calls of one plugin at the same time; 0
	// means 64.
	PluginConcurrency int
	// MaxWaiting bounds the calls that wait for one plugin or one tool; 0
	// means 256. A call beyond it is refused.
	MaxWaiting int
	// MaxWait bounds how long a call waits for its turn; 0 means 30 seconds.
	MaxWait time.Duration
	// AnswerTimeout bounds how long a question of a tool waits for its answer; 0
	// means 10 minutes.
	AnswerTimeout time.Duration
}

// Pipeline runs calls. Its methods may be called from any goroutine.
type Pipeline struct {
	opts    Options
	applied atomic.Pointer[Settings]
	slots   slots
	flights flights
	buckets buckets
	cache   cache
	busy    busy
	forgers sync.Map // of program: whose forged metadata is in the log

	refusals refusals
}

// Settings are what a reload replaces.
type Settings struct {
	// Policy decides about the calls.
	Policy *policy.Rules
	// Roots are the directories that callers may work in.
	Roots []string
	// ActionsPerHour bounds the calls of one user that change something; 0
	// means no bound.
	ActionsPerHour int

	spelled []string // Roots, and where those lead that are behind symbolic links
}

// New returns a pipeline, or an error that names the option that is missing.
// The caller must Close it.
func New(opts Options) (*Pipeline, error) {
	for _, required := range []struct {
		name    string
		missing bool
	}{
		{"catalog", opts.Catalog == nil},
		{"runner", opts.Runner == nil},
		{"policy", opts.Policy == nil},
		{"desk", opts.Desk == nil},
		{"grants", opts.Grants == nil},
		{"journal", opts.Journal == nil},
		{"store", opts.Store == nil},
		{"events", opts.Events == nil},
	} {
		if required.missing {
			return nil, fmt.Errorf("pipeline: no %s is given", required.name)
		}
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
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
		opts:  opts,
		slots: slots{queues: make(map[slotKey]*queue)},
		flights: flights{
			keep: opts.Keep, byID: make(map[string]*Flight), owed: make(map[flightKey]*Flight),
			keyed: make(map[idempotencyKey]*Flight), users: make(map[string]int), others: make(map[string]*Flight), timers: make(map[*Flight]*time.Timer),
		},
		buckets: buckets{all: make(map[bucketKey]*bucket)},
		cache:   newCache(),
		busy:    busy{calls: make(map[session]int)},
	}
	p.Apply(Settings{Policy: opts.Policy, Roots: opts.Roots, ActionsPerHour: opts.ActionsPerHour})
	return p, nil
}

// Apply replaces what a reload can. Calls that change something and have not
// begun by then are decided again before they do.
func (p *Pipeline) Apply(s Settings) {
	s.spell()
	p.applied.Store(&s)
	p.cache.reset()
}

// spell finds out where the roots lead.
func (s *Settings) spell() {
	s.spelled = slices.Clone(s.Roots)
	for _, root := range s.Roots {
		if leads := links.Resolve(root); !slices.Contains(s.spelled, leads) {
			s.spelled = append(s.spelled, leads)
		}
	}
}

// Drain starts no new calls: calls that have not begun, and those made later, end
// at once with an error that says so. It returns when the others have ended, or ctx
// has: Close cancels what is left.
func (p *Pipeline) Drain(ctx context.Context) { p.flights.drain(ctx) }

// Close cancels all calls and returns when none is under way. Questions to
// people stay open: the same call made to the next host finds the answer.
func (p *Pipeline) Close() error {
	p.flights.close()
	return nil
}

// Request is a call as a front end received it.
type Request struct {
	// Caller is who calls, from the credential.
	Caller auth.Caller
	// Tool is a tool's name or alias.
	Tool string
	// Arguments is the JSON text as it came; empty means no arguments.
	Arguments []byte
	// Sink receives progress and output as long as anybody holds the flight,
	// which may be longer than whoever gave it.
	Sink tool.Sink
	// Attended says that whoever makes the call takes the tool's questions to the
	// user, until it calls [Flight.Leave]. If nobody does, the tool hears that
	// nobody can be asked.
	Attended bool
	// Traceparent is a W3C Trace Context, or "".
	Traceparent string
	// IdempotencyKey makes a call that is sent again, within a day, have its
	// effect once; at most 200 bytes. "" means that each request is a call of
	// its own.
	IdempotencyKey string
	// Context is what the caller says about the call to whoever is asked to
	// approve it. It is shown as the caller's words and decides nothing.
	Context string
}

// Outcome is how a call ended.
type Outcome struct {
	// ID is the call's own, "tc_" and a UUIDv7.
	ID string
	// Tool is the tool's name, or the name as it was asked for if there is no
	// such tool.
	Tool string
	// Result is what the caller gets; its Error says why a call failed.
	Result tool.Result
	// Repairs are what the arguments needed to fit.
	Repairs []schema.Repair
	// Duration is the time from request to result.
	Duration time.Duration
	// Approval is the id of the question that a person was asked, or "".
	Approval string
	// Pending says that the call goes on and has no result yet.
	Pending bool
	// Question is what the tool asks the user, for a holder that attends; nil if
	// it asks nothing.
	Question *Question
}
