package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/toolhost/toolhost/sdk/tool"
)

// AddTool adds a tool to p. The spec says everything about it but the schemas,
// which come from In and Out.
//
// In is a struct. Its fields are described by tags:
//
//	Path string `json:"path" jsonschema:"file to read" role:"path"`
//	Mode string `json:"mode,omitempty" jsonschema:"how to open it" enum:"text,binary" default:"text"`
//
// A field is required unless it has omitempty, omitzero or a default. Every
// field needs a description (jsonschema). Further tags: enum (values that it
// may have, separated by commas), default (filled in before run sees it), min
// and max (bounds of a number, of the characters of a string, of the items of a
// list; checked before run sees it), role (what it means to the host's rules, see [tool.Role]), alias (other names,
// separated by commas), raw:"true" (one string that a caller may give as the
// whole arguments).
//
// Out is what the tool answers: a string is text; a struct, a pointer to one
// or a map is structured JSON, whose schema is published, and may add a text
// of its own (see [Texter]); a [tool.Result] is taken as it is; struct{} is no
// output. Lists and maps that are nil are written as empty ones, so that the
// schema need not allow a null.
//
// When run fails, a [*tool.Error] in its error goes to the caller as it is; a
// code that only the host may say ([tool.Code.HostOnly]) becomes [tool.Failed].
// An ended context becomes [tool.Canceled] or [tool.Timeout], any other error
// [tool.Failed] with the error's full text: it is written for a model. A string
// or tool.Result returned beside the error is kept, anything else is dropped.
//
// A mistake in the code becomes [tool.Internal], and the log says more: a
// panic, a nil pointer as the result, a result that JSON cannot hold.
//
// The host may call run several times at once. It has checked the arguments
// against the schema. AddTool never fails: [Plugin.Err] has the mistakes.
func AddTool[In, Out any](p *Plugin, spec tool.Spec, run func(context.Context, *Call, In) (Out, error)) {
	add(p, spec, run, nil)
}

// AddToolWithPreview adds a tool as [AddTool] does that can also say what a
// call would do. The preview has no side effects; the host shows it to whoever
// is asked to approve the call. If its digest is set, it comes back to run as
// [Call.PreviewDigest]: run must then answer [tool.Conflict] if the state is
// no longer the one that was shown.
func AddToolWithPreview[In, Out any](
	p *Plugin, spec tool.Spec,
	run func(context.Context, *Call, In) (Out, error),
	preview func(context.Context, *Call, In) (tool.Preview, error),
) {
	if preview == nil {
		p.mistake(spec.Name, "", "has no function for its preview; give one, or use AddTool")
	}
	add(p, spec, run, preview)
}

// Texter may be implemented by a struct that a tool returns, to give a model a
// text beside the structured result. Without it the host shows the JSON.
type Texter interface {
	// Text returns the result for a model to read.
	Text() string
}

func add[In, Out any](
	p *Plugin, spec tool.Spec,
	run func(context.Context, *Call, In) (Out, error),
	preview func(context.Context, *Call, In) (tool.Preview, error),
) {
	in := inferArguments(reflect.TypeFor[In]())
	out := inferResult(reflect.TypeFor[Out]())
	if run == nil {
		p.mistake(spec.Name, "", "has no function to run")
	}
	p.checkSpec(spec, in, preview != nil)
	for _, m := range slices.Concat(in.mistakes, out.mistakes) {
		p.mistake(spec.Name, m.Field, "%s", m.Reason)
	}
	spec.InputSchema, spec.OutputSchema = in.schema, out.schema
	spec.HasPreview = preview != nil

	var places *nils
	if out.schema != nil && len(out.mistakes) == 0 {
		places = nilsIn(reflect.TypeFor[Out]())
	}
	decode := func(raw json.RawMessage) (In, error) {
		args, err := decodeArguments[In](raw, in.defaults)
		if err != nil {
			return args, err
		}
		if wrong := in.bounds.check(raw); wrong != nil {
			return args, tool.Errorf(tool.InvalidArgument, "%s %s", wrong.shownPath(), wrong.reason)
		}
		return args, nil
	}
	e := &entry{spec: spec}
	e.run = func(ctx context.Context, c *Call, raw json.RawMessage) (tool.Result, error) {
		args, err := decode(raw)
		if err != nil {
			return tool.Result{}, err
		}
		answer, err := run(ctx, c, args)
		result, wrong := toResult(&answer, err != nil, places)
		return result, errors.Join(err, wrong)
	}
	if preview != nil {
		e.preview = func(ctx context.Context, c *Call, raw json.RawMessage) (tool.Preview, error) {
			args, err := decode(raw)
			if err != nil {
				return tool.Preview{}, err
			}
			return preview(ctx, c, args)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tools = append(p.tools, e)
}

// checkSpec notes what is wrong with a tool apart from its types.
func (p *Plugin) checkSpec(spec tool.Spec, in inferred, previews bool) {
	name := spec.Name
	if !tool.ValidName(name) {
		p.mistake(name, "", "the name is not valid: expected a lower-case letter, then up to 63 of a-z, 0-9 and _")
	}
	if spec.Description == "" {
		p.mistake(name, "", "has no description; a model chooses tools by it")
	}
	for _, shown := range []struct{ what, text string }{
		{"description", spec.Description}, {"title", spec.Title}, {"category", spec.Category},
	} {
		if tool.Visible(shown.text) != shown.text {
			p.mistake(name, "", "has characters in its %s that are not seen; a host refuses it", shown.what)
		}
	}
	if _, err := spec.Tier.MarshalText(); err != nil {
		p.mistake(name, "", "has no tier; expected tool.ReadOnly, tool.SideEffecting or tool.Privileged")
	}
	if spec.InputSchema != nil || spec.OutputSchema != nil {
		p.mistake(name, "", "has a schema of its own; leave it empty, it comes from the Go type")
	}
	if spec.HasPreview && !previews {
		p.mistake(name, "", "says that it has a preview; add it with AddToolWithPreview")
	}
	if spec.MaxOutput < 0 || spec.Timeout < 0 || spec.MaxConcurrency < 0 {
		p.mistake(name, "", "has a negative limit; 0 means the host's default")
	}
	for _, rule := range spec.TierWhen {
		switch known := slices.Contains(in.properties, rule.Property); {
		case known || in.schema == nil: // nothing is known of arguments whose type was refused
		case len(in.properties) == 0:
			p.mistake(name, "", "a tier rule names %q, which is not an argument; the tool has none", rule.Property)
		default:
			p.mistake(name, "", "a tier rule names %q, which is not an argument; expected one of %s", rule.Property, list(in.properties))
		}
		if _, err := rule.Tier.MarshalText(); err != nil {
			p.mistake(name, "", "the tier rule for %q has no tier", rule.Property)
		}
		if rule.Equals != nil && !json.Valid(rule.Equals) {
			p.mistake(name, "", "the tier rule for %q compares with %s, which is not JSON", rule.Property, rule.Equals)
		}
	}
	p.claimNames(spec)
}

// claimNames notes names that two tools share, and tools that come too late.
func (p *Plugin) claimNames(spec tool.Spec) {
	p.mu.Lock()
	sealed := p.sealed
	taken := map[string]string{}
	for _, n := range append([]string{spec.Name}, spec.Aliases...) {
		if owner, ok := p.names[n]; ok {
			taken[n] = owner
		}
		p.names[n] = spec.Name
	}
	p.mu.Unlock()

	for n, owner := range taken {
		p.mistake(spec.Name, "", "the name %q is already taken by tool %q", n, owner)
	}
	for _, alias := range spec.Aliases {
		if !tool.ValidName(alias) {
			p.mistake(spec.Name, "", "the alias %q is not valid: expected a lower-case letter, then up to 63 of a-z, 0-9 and _", alias)
		}
	}
	if sealed {
		p.mistake(spec.Name, "", "was added while the plugin was being served; add it before Serve or in Configure")
	}
}

func inferArguments(t reflect.Type) inferred {
	if t.Kind() != reflect.Struct {
		return inferred{mistakes: []DefinitionError{{Reason: "the arguments must be a struct, not " + t.String()}}}
	}
	return infer(t, arguments)
}
