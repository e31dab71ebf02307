package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"github.com/toolhost/toolhost/sdk/tool"
)

// AddTool adds a tool to p. The spec describes everything except the schemas,
// which come from In and Out.
//
// In is a struct. Its fields are described by tags:
//
//	Path string `json:"path" jsonschema:"file to read" role:"path"`
//	Mode string `json:"mode,omitempty" jsonschema:"how to open it" enum:"text,binary" default:"text"`
//
// A field is required unless it has omitempty, omitzero or a default. Every
// field needs a description (the tag jsonschema). Other tags:
//
//   - enum lists the allowed values, separated by commas.
//   - default is the value that run gets if the caller gives none.
//   - min and max bound a number, the length of a string in characters, or the
//     number of items of a list. They are checked before run is called.
//   - role tells the host's rules what the value means; see [tool.Role].
//   - alias lists other names, separated by commas.
//   - raw:"true" marks the one string that a caller may give instead of an
//     object of arguments.
//
// Out is the type of the result. A string is text. A struct, a pointer to a struct or a map is
// structured JSON with a published schema, and may provide its own text (see [Texter]). A
// [tool.Result] is sent unchanged. struct{} means no output. Nil lists and maps are written as
// empty ones, so that the schema need not allow null.
//
// When run fails, the caller reads the [*tool.Error] in the chain of its error.
// A code that only the host may use ([tool.Code.HostOnly]) becomes
// [tool.Failed]. An ended context becomes [tool.Canceled] or [tool.Timeout]. Any
// other error becomes [tool.Internal]: the caller reads the id of the call, and
// the log has the error. So do a panic, a nil pointer as the result, and a
// result that JSON cannot hold. A string or tool.Result returned with an error
// is kept; any other result is dropped.
//
// The host checks the arguments against the schema, and may call run several
// times at once. AddTool never fails: [Plugin.Err] returns the mistakes.
func AddTool[In, Out any](p *Plugin, spec tool.Spec, run func(context.Context, *Call, In) (Out, error)) {
	add(p, spec, run, nil)
}

// AddToolWithPreview adds a tool as [AddTool] does, with a function that
// describes what a call would do. The function must have no side effects. The
// host shows the preview to the person who is asked to approve the call. If the
// preview has a digest, run gets it as [Call.PreviewDigest], and must return
// [tool.Conflict] if the state has changed since. [AddPlanned] does all of this
// for a change that is planned before it is made.
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

// Texter is implemented by a result that has a text for models besides its
// structured JSON. Without it the host shows the JSON.
type Texter interface {
	// Text returns the result as a model reads it.
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
	if spec.InputSchema != nil || spec.OutputSchema != nil {
		p.mistake(spec.Name, "", "has a schema of its own; leave it empty (the schema comes from the Go type), or use AddRawTool")
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
	p.addEntry(e)
}

// checkSpec notes the mistakes of a spec.
func (p *Plugin) checkSpec(spec tool.Spec, in inferred, previews bool) {
	name := spec.Name
	if !tool.ValidName(name) {
		p.mistake(name, "", "the name is not valid: expected a lower-case letter, then up to 63 of a-z, 0-9 and _")
	}
	if spec.Description == "" {
		p.mistake(name, "", "has no description; a model chooses tools by it")
	}
	for _, shown := range []struct{ what, text string }{
		{"description", spec.Description}, {"title", spec.Title}, {"category", spec.Category}, {"search hint", spec.SearchHint}, {"reason to be unavailable", spec.Unavailable},
	} {
		if tool.Visible(shown.text) != shown.text {
			p.mistake(name, "", "has invisible characters in its %s; a host refuses it", shown.what)
		}
	}
	if _, err := spec.Tier.MarshalText(); err != nil {
		p.mistake(name, "", "has no tier; expected tool.ReadOnly, tool.SideEffecting or tool.Privileged")
	}
	if spec.HasPreview && !previews {
		p.mistake(name, "", "sets HasPreview; add the tool with AddToolWithPreview")
	}
	if spec.MaxOutput < 0 || spec.Timeout < 0 || spec.MaxConcurrency < 0 {
		p.mistake(name, "", "has a negative limit; 0 means the host's default")
	}
	for _, rule := range spec.TierWhen {
		switch known := slices.Contains(in.properties, rule.Property); {
		case known || in.schema == nil: // the type of the arguments was refused
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

// claimNames notes names that two tools share, and tools that are added too late.
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
		if !tool.ValidAlias(alias) {
			p.mistake(spec.Name, "", "the alias %q is not valid: expected a letter, then up to 63 letters, digits and underscores", alias)
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
