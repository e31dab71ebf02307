package pipeline

import (
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// errNested is the error of a call_tool that calls call_tool.
var errNested = tool.Errorf(tool.InvalidArgument, "%s cannot call itself", catalog.CallTool).
	WithHint("give the name of the tool to call; %s finds it", catalog.FindTool)

// Unwrap returns the call that a call of the host's tool call_tool makes, and any other call
// as it is. [Pipeline.Start] and [Pipeline.Explain] unwrap calls before anything else looks
// at them, so that every step, record and message is about the tool that runs.
//
// A call_tool with wrong arguments, or that names itself, stays as it is; its check returns
// the error.
func (p *Pipeline) Unwrap(req Request) Request {
	if req.Tool != catalog.CallTool {
		return req
	}
	entry, err := p.opts.Catalog.Lookup(req.Tool)
	if err != nil || !entry.OfHost() {
		return req
	}
	value, err := schema.Read(req.Arguments)
	if err != nil {
		return req
	}
	arguments, err := entry.Schema.Check(value)
	if err != nil {
		return req
	}
	name, _ := arguments.Values["name"].(string) // the schema requires it
	if name == catalog.CallTool {
		return req
	}
	req.Tool, req.Arguments = name, nil
	if inner, ok := arguments.Values["arguments"]; ok {
		req.Arguments = schema.Canonical(inner)
	}
	return req
}
