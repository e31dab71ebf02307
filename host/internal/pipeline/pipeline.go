// Package pipeline carries one call from request to result. Every step stands
// in order in call.go, and there is no second way in: the order is the
// security property. A call always ends with a result; a plugin that crashes,
// hangs, lies or floods costs its own call only.
package pipeline

import (
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/catalog"
	"github.com/toolhost/toolhost/host/internal/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Options are the parts that a pipeline works with.
type Options struct {
	// Catalog knows the tools. Required.
	Catalog *catalog.Catalog
	// Runner carries the calls. Required.
	Runner Runner
	// Logger gets the causes that callers do not see; nil means none.
	Logger hclog.Logger
	// Roots are the directories that callers may work in, the first one being
	// what relative paths are relative to.
	Roots []string
	// PluginConcurrency bounds the calls of one plugin at the same time; 0
	// means 64.
	PluginConcurrency int
	// MaxWaiting bounds the calls that wait for one plugin or one tool; 0
	// means 256. A call beyond it is refused.
	MaxWaiting int
	// MaxWait bounds how long a call waits for its turn; 0 means 30 seconds.
	MaxWait time.Duration
}

// Pipeline runs calls. Its methods may be called from any goroutine.
type Pipeline struct {
	opts  Options
	slots slots
}

// New returns a pipeline, or an error that names the option that is missing.
func New(opts Options) (*Pipeline, error) {
	if opts.Catalog == nil {
		return nil, errors.New("pipeline: no catalog is given")
	}
	if opts.Runner == nil {
		return nil, errors.New("pipeline: no runner is given")
	}
	if opts.Logger == nil {
		opts.Logger = hclog.NewNullLogger()
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
	return &Pipeline{opts: opts, slots: slots{queues: make(map[slotKey]*queue)}}, nil
}

// Request is a call as a front end received it.
type Request struct {
	// Caller is who calls, from the credential.
	Caller auth.Caller
	// Tool is a tool's name or alias.
	Tool string
	// Arguments is the JSON text as it came; empty means no arguments.
	Arguments []byte
	// Sink receives progress and output while the call runs.
	Sink tool.Sink
	// Traceparent is a W3C Trace Context, or "".
	Traceparent string
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
}
