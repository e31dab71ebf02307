// Package hosttools implements the host's own tools: result_read reads the rest of a long
// result, call_wait waits for a call that did not finish in time, find_tool finds tools that a
// list leaves out. They change nothing and see only what belongs to their caller. Their calls
// go through the pipeline like all others. A call of call_tool never arrives here: the pipeline
// makes the call that it names.
package hosttools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/call/results"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Options configure [Tools]. All are required except Command.
type Options struct {
	// Pipeline executes the calls that the tools wait for.
	Pipeline *pipeline.Pipeline
	// Catalog holds the tools that find_tool finds.
	Catalog *catalog.Catalog
	// Approvals holds the questions that were asked before the host started.
	Approvals *approval.Service
	// Results holds the results that result_read can read.
	Results *results.Dir
	// Patience bounds how long call_wait waits.
	Patience time.Duration
	// Command returns the shell command that runs a toolhost command for this host, from any
	// directory. Nil means that the program's name is enough.
	Command func(words string) string
}

// Tools runs the host's own tools. Its methods may be called from any goroutine.
type Tools struct {
	opts Options

	mu      sync.Mutex        // guards the fields below; held while a call is repeated
	waiting map[string]int    // number of call_wait calls by user
	begun   map[string]string // ids of repeated calls by their approval
}

var _ pipeline.Runner = (*Tools)(nil)

// New returns the tools. [Plugin] and [Specs] describe them to a catalog.
func New(opts Options) (*Tools, error) {
	switch {
	case opts.Pipeline == nil || opts.Catalog == nil || opts.Approvals == nil || opts.Results == nil:
		return nil, errors.New("the host's own tools: a pipeline, a catalog, an approval service and results are required")
	case opts.Patience <= 0:
		return nil, errors.New("the host's own tools: the patience must be more than zero")
	}
	if opts.Command == nil {
		opts.Command = func(words string) string { return "toolhost " + words }
	}
	return &Tools{opts: opts, waiting: make(map[string]int), begun: make(map[string]string)}, nil
}

// Plugin returns the tools' entry in a catalog, which must be the first. patience is
// [Options.Patience].
func Plugin(patience time.Duration) catalog.Plugin {
	return catalog.Plugin{
		Name: catalog.HostPlugin, Ceiling: tool.Privileged, TrustClaims: true, // for call_tool, which may call any
		// The wait ends before this time-out, with an answer that says what to do next.
		Tools: []catalog.ToolOptions{{Name: catalog.CallWait, Timeout: operation.LongestWait(patience) + time.Minute}},
	}
}

// Specs describes the tools.
func Specs() []tool.Spec {
	return []tool.Spec{
		{
			Name: catalog.ResultRead, Core: true, Title: "Read long result", Category: "host", Tier: tool.ReadOnly,
			Description: "Read more of a result that was cut: from a cursor or line, lines that match a pattern, or a part of JSON.",
			InputSchema: json.RawMessage(fmt.Sprintf(readSchema, minPart, maxPart, maxPattern, maxContext, maxPointer)),
			MaxOutput:   maxPart + noteSize, MaxConcurrency: maxReads,
		},
		{
			Name: catalog.CallWait, Core: true, Aliases: []string{formerWait}, Title: "Wait for a call", Category: "host", Tier: tool.ReadOnly,
			Description: "Wait for a call that is still running or waits for approval, and return its result. If it says that the call is not done, call it again.",
			InputSchema: json.RawMessage(waitSchema),
		},
		{
			Name: catalog.FindTool, Core: true, Title: "Find a tool", Category: "host", Tier: tool.ReadOnly,
			Description: "Search all tools, also those not listed here. Returns name, description and input schema of the best. Call them with call_tool.",
			InputSchema: json.RawMessage(fmt.Sprintf(findSchema, maxQuery, maxFound, defaultFound)),
		},
		{
			// The tier is for clients. The host decides about the tool that is called.
			Name: catalog.CallTool, Core: true, Title: "Call a tool", Category: "host", Tier: tool.Privileged, OpenWorld: true,
			Description: "Call a tool that find_tool returned.",
			InputSchema: json.RawMessage(callSchema),
		},
	}
}

// Run implements [pipeline.Runner].
func (t *Tools) Run(ctx context.Context, _, _ string, call tool.Call, sink tool.Sink) (tool.Result, bool, error) {
	switch call.Tool {
	case catalog.ResultRead:
		result, err := t.read(ctx, call)
		return result, err == nil, err
	case catalog.CallWait:
		result, err := t.wait(ctx, call, sink)
		return result, err == nil, err
	case catalog.FindTool:
		result, err := t.findTools(call)
		return result, err == nil, err
	}
	return tool.Result{}, false, fmt.Errorf("the host has no tool %q of its own", call.Tool)
}

// Preview implements [pipeline.Runner]. The pipeline never calls it, since the tools change
// nothing.
func (t *Tools) Preview(context.Context, string, string, tool.Call) (tool.Preview, error) {
	return tool.Preview{}, tool.Errorf(tool.NotFound, "the host's own tools have no preview")
}
