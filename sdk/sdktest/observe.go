package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	toolpluginv1 "github.com/toolhost/toolhost/proto/toolplugin/v1"
	"github.com/toolhost/toolhost/sdk/tool"
)

// observe makes a call and returns its result, nil if there is none, and
// everything in its answer that breaks the contract.
func (p *Plugin) observe(ctx context.Context, call Call, t tool.Spec) (*toolpluginv1.Result, []string) {
	raw, err := encode(call.Args)
	if err != nil {
		return nil, []string{fmt.Sprintf("the arguments of the test cannot be encoded: %v", err)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.client.Call(ctx, &toolpluginv1.CallRequest{
		Context: contextToProto(tool.Call{ID: "tc_sdktest", Context: p.options.Context}), Tool: call.Tool, ArgumentsJson: raw,
	})
	if err != nil {
		return nil, []string{p.streamProblem(ctx, raw, err)}
	}
	var result *toolpluginv1.Result
	var problems []string
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, append(problems, p.streamProblem(ctx, raw, err))
		}
		late := result != nil
		switch e := event.GetEvent().(type) {
		case *toolpluginv1.CallResponse_Result:
			if late {
				problems = append(problems, fmt.Sprintf("called with %s it answers with more than one result", shorten(raw)))
			}
			result = e.Result
		case *toolpluginv1.CallResponse_Progress, *toolpluginv1.CallResponse_Chunk:
			if late {
				problems = append(problems, fmt.Sprintf("called with %s it goes on after its result", shorten(raw)))
			}
		default:
			problems = append(problems, fmt.Sprintf("called with %s it sends an empty event", shorten(raw)))
		}
	}
	if result == nil {
		return nil, append(problems, fmt.Sprintf("called with %s it ends without a result", shorten(raw)))
	}
	return result, append(problems, resultProblems(result, t)...)
}

func (p *Plugin) streamProblem(ctx context.Context, raw json.RawMessage, err error) string {
	if ctx.Err() != nil {
		return fmt.Sprintf("called with %s it does not answer in time; if it is meant to go on, give it an endless call in Options.Calls", shorten(raw))
	}
	if e := p.wireError(ctx, err); e.Code == tool.PluginCrashed {
		return fmt.Sprintf("called with %s the plugin dies: %s", shorten(raw), e.Message)
	}
	return fmt.Sprintf("called with %s it answers with a gRPC status instead of a result: %v", shorten(raw), err)
}

// resultProblems returns what is wrong with one result.
func resultProblems(r *toolpluginv1.Result, t tool.Spec) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if e := r.GetError(); e != nil {
		if !tool.Code(e.GetCode()).Valid() {
			add("its error has the unknown code %q, expected one of %q", e.GetCode(), tool.Codes())
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
			add("part %d of its content has no kind that is known (%d)", n, part.GetKind())
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
			add("its metadata is not a JSON object: %s", shorten(raw))
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

// shorten makes JSON fit into a line.
func shorten(raw []byte) string {
	const most = 120
	if len(raw) <= most {
		return string(raw)
	}
	return strings.ToValidUTF8(string(raw[:most]), "") + "..."
}
