package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// observation is the outcome of one call.
type observation struct {
	result   *toolpluginv1.Result // nil if there was none
	problems []string             // everything that breaks the contract
	died     bool                 // the plugin's process ended
	late     bool                 // there was no answer in time
}

func (o *observation) add(format string, args ...any) {
	o.problems = append(o.problems, fmt.Sprintf(format, args...))
}

// observe makes a call and checks its answer.
func (p *Plugin) observe(ctx context.Context, call Call, t tool.Spec) (seen observation) {
	raw, err := encode(call.Args)
	if err != nil {
		seen.add("the arguments of the test cannot be encoded: %v", err)
		return seen
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.client.Call(ctx, &toolpluginv1.CallRequest{
		Context: contextToProto(p.complete(tool.Call{ID: "tc_sdktest", Tool: call.Tool})), Tool: call.Tool, ArgumentsJson: raw,
	})
	if err != nil {
		seen.brokenOff(ctx, p, raw, err)
		return seen
	}
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			seen.result = nil
			seen.brokenOff(ctx, p, raw, err)
			return seen
		}
		late := seen.result != nil
		switch e := event.GetEvent().(type) {
		case *toolpluginv1.CallResponse_Result:
			if late {
				seen.add("called with %s it answers with more than one result", display.Cut(string(raw), maxEcho))
			}
			seen.result = e.Result
		case *toolpluginv1.CallResponse_Progress, *toolpluginv1.CallResponse_Chunk:
			if late {
				seen.add("called with %s it sends more after its result", display.Cut(string(raw), maxEcho))
			}
		default:
			seen.add("called with %s it sends an empty event", display.Cut(string(raw), maxEcho))
		}
	}
	if seen.result == nil {
		seen.add("called with %s it ends without a result", display.Cut(string(raw), maxEcho))
		return seen
	}
	if e := seen.result.GetError(); e.GetCode() == string(tool.Internal) {
		seen.add("called with %s it fails because of its own mistake (%s): %s", display.Cut(string(raw), maxEcho), tool.Internal, e.GetMessage())
	}
	seen.problems = append(seen.problems, resultProblems(seen.result, t)...)
	return seen
}

// brokenOff records that a call ended with err instead of a result.
func (o *observation) brokenOff(ctx context.Context, p *Plugin, raw json.RawMessage, err error) {
	e := p.wireError(ctx, err)
	switch {
	case ctx.Err() != nil:
		o.late = true
		o.add("called with %s it does not answer in time; if it should run until it is canceled, give it an endless call in Options.Calls", display.Cut(string(raw), maxEcho))
	case e.Code == tool.PluginCrashed:
		o.died = true
		o.add("called with %s the plugin dies: %s", display.Cut(string(raw), maxEcho), e.Message)
	default:
		o.add("called with %s it answers with a gRPC status instead of a result: %v", display.Cut(string(raw), maxEcho), err)
	}
}

// resultProblems returns what is wrong with one result.
func resultProblems(r *toolpluginv1.Result, t tool.Spec) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if e := r.GetError(); e != nil {
		switch code := tool.Code(e.GetCode()); {
		case !code.Valid():
			add("its error has the unknown code %q, expected one of %q", code, pluginCodes())
		case code.HostOnly():
			add("its error has the code %q, which only the host may use; expected one of %q", code, pluginCodes())
		}
		if e.GetMessage() == "" {
			add("its error (%s) has no message", e.GetCode())
		}
	}
	for n, part := range r.GetContent() {
		text := part.GetKind() == toolpluginv1.Content_KIND_TEXT ||
			(part.GetKind() == toolpluginv1.Content_KIND_RESOURCE && strings.HasPrefix(part.GetMediaType(), "text/"))
		switch {
		case kindFromProto(part.GetKind()) == 0:
			add("part %d of its content has the unknown kind %d", n, part.GetKind())
		case text && !utf8.Valid(part.GetData()):
			add("part %d of its content is text that is not UTF-8", n)
		case part.GetKind() == toolpluginv1.Content_KIND_IMAGE && part.GetMediaType() == "",
			part.GetKind() == toolpluginv1.Content_KIND_AUDIO && part.GetMediaType() == "":
			add("part %d of its content (%v) has no media type", n, kindFromProto(part.GetKind()))
		}
	}
	if raw := r.GetMetadataJson(); len(raw) > 0 {
		var object map[string]any
		if json.Unmarshal(raw, &object) != nil {
			add("its metadata is not a JSON object: %s", display.Cut(string(raw), maxEcho))
		}
	}
	switch raw := r.GetStructuredJson(); {
	case len(raw) > 0:
		if err := validate(t.OutputSchema, raw); err != nil {
			add("its structured result does not match its output schema: %v", err)
		}
	case len(t.OutputSchema) > 0 && r.GetError() == nil:
		add("it has an output schema and answers without a structured result")
	}
	return problems
}

// maxEcho is how much of an argument or an output a problem repeats, in bytes.
const maxEcho = 120

func pluginCodes() []tool.Code { return slices.DeleteFunc(tool.Codes(), tool.Code.HostOnly) }
