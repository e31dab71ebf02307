package sdk

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/toolhost/toolhost/sdk/tool"
)

// AddRawTool adds a tool whose schemas are not known when the plugin is
// compiled, such as one of another server that the plugin is a bridge to.
// spec.InputSchema is required: a JSON Schema (draft 2020-12) of type object, in
// which every property has a type and a description; if spec.Foreign is set, they may
// be missing, and the schema may name an earlier draft. spec.OutputSchema is
// optional. run gets the arguments as a JSON object, which the host has checked
// against the schema, with its defaults. Errors are treated as by [AddTool].
//
// Prefer [AddTool], whose schema comes from a Go type.
func AddRawTool(p *Plugin, spec tool.Spec, run func(context.Context, *Call, json.RawMessage) (tool.Result, error)) {
	if run == nil {
		p.mistake(spec.Name, "", "has no function to run")
	}
	in := inferred{schema: spec.InputSchema}
	var schema struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	switch err := json.Unmarshal(spec.InputSchema, &schema); {
	case len(spec.InputSchema) == 0:
		p.mistake(spec.Name, "", "has no InputSchema; expected a JSON Schema of type object")
	case err != nil:
		p.mistake(spec.Name, "", "the InputSchema is not a JSON Schema: %v", err)
	case schema.Type != "object":
		p.mistake(spec.Name, "", "the InputSchema is of type %q, expected \"object\"", schema.Type)
	}
	if len(spec.OutputSchema) > 0 && !json.Valid(spec.OutputSchema) {
		p.mistake(spec.Name, "", "the OutputSchema is not JSON")
	}
	in.properties = slices.Sorted(maps.Keys(schema.Properties))
	p.checkSpec(spec, in, false)
	p.addEntry(&entry{spec: spec, run: func(ctx context.Context, c *Call, raw json.RawMessage) (tool.Result, error) {
		if len(raw) == 0 {
			raw = json.RawMessage("{}")
		}
		answer, err := run(ctx, c, raw)
		result, wrong := toResult(&answer, err != nil, nil)
		if wrong != nil {
			return result, wrong
		}
		return result, err
	}})
}

// addEntry adds a tool to those that the plugin has.
func (p *Plugin) addEntry(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tools = append(p.tools, e)
}
