package sdktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Untested returns the properties of the tools, including those in objects and lists,
// that no call sets to a value other than the default. They are written as
// "tool.property" and sorted. Pass the calls of all tests to find parameters without a
// test. It returns an error if a schema or arguments are not JSON.
func Untested(tools []tool.Spec, calls []Call) ([]string, error) {
	all := map[string]property{}
	for _, spec := range tools {
		var root property
		if err := json.Unmarshal(spec.InputSchema, &root); err != nil {
			return nil, fmt.Errorf("read the schema of %s: %w", spec.Name, err)
		}
		root.collect(spec.Name, all)
	}
	untested := maps.Clone(all)
	for _, c := range calls {
		args, err := json.Marshal(c.Args)
		if err != nil {
			return nil, fmt.Errorf("read the arguments of a call of %s: %w", c.Tool, err)
		}
		noteSet(all, untested, c.Tool, args)
	}
	return slices.Sorted(maps.Keys(untested)), nil
}

// property is the part of a schema that [Untested] reads.
type property struct {
	Default    json.RawMessage     `json:"default"`
	Properties map[string]property `json:"properties"`
	Items      *property           `json:"items"`
}

// collect adds all properties of a schema by their path.
func (p property) collect(path string, all map[string]property) {
	for name, inner := range p.Properties {
		all[path+"."+name] = inner
		inner.collect(path+"."+name, all)
	}
	if p.Items != nil {
		p.Items.collect(path+"[]", all)
	}
}

// noteSet removes from untested the properties in value, an object or a list of
// objects, that are not their default.
func noteSet(all, untested map[string]property, path string, value json.RawMessage) {
	var items []json.RawMessage
	if json.Unmarshal(value, &items) == nil {
		for _, item := range items {
			noteSet(all, untested, path+"[]", item)
		}
		return
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) != nil {
		return // a plain value has no properties
	}
	for name, inner := range object {
		name = path + "." + name
		if !bytes.Equal(inner, all[name].Default) {
			delete(untested, name)
		}
		noteSet(all, untested, name, inner)
	}
}
