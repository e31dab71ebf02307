package schema

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// mistake is one error in a value.
type mistake struct {
	path   []string       // of the value
	schema map[string]any // that it does not satisfy, or nil
	kind   jsonschema.ErrorKind
	either []string // types that would do, of a kind.Type
	names  []string // properties, of an unknown or a missing one
}

// mistakes lists the errors of a validation, each once: missing properties first, the rest in the
// order of their places.
func (s *Schema) mistakes(err error) []mistake {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return nil
	}
	list := s.flatten(nil, invalid)
	slices.SortStableFunc(list, func(a, b mistake) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), slices.Compare(a.path, b.path))
	})
	return list
}

// rank orders mistakes: the most important first.
func (m mistake) rank() int {
	if _, ok := m.kind.(*kind.Required); ok {
		return 0
	}
	return 1
}

// flatten appends the mistakes below e to list.
func (s *Schema) flatten(list []mistake, e *jsonschema.ValidationError) []mistake {
	switch k := e.ErrorKind.(type) {
	case nil:
		return list
	case *kind.Type:
		return append(list, mistake{path: e.InstanceLocation, schema: s.node(e), kind: k, either: k.Want})
	case *kind.Required:
		return append(list, mistake{path: e.InstanceLocation, schema: s.node(e), kind: k, names: slices.Sorted(slices.Values(k.Missing))})
	case *kind.AdditionalProperties:
		names := slices.Sorted(slices.Values(k.Properties))
		return append(list, mistake{path: e.InstanceLocation, schema: s.node(e), kind: k, names: names})
	case *kind.FalseSchema:
		return s.unevaluated(list, e)
	case *kind.AnyOf, *kind.OneOf:
		return s.alternatives(list, e)
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		before := len(list)
		for _, cause := range e.Causes {
			list = s.flatten(list, cause)
		}
		return dropFollowing(list, before)
	}
	return append(list, mistake{path: e.InstanceLocation, schema: s.node(e), kind: e.ErrorKind})
}

// unevaluated treats a property that unevaluatedProperties forbids like one that
// additionalProperties forbids.
func (s *Schema) unevaluated(list []mistake, e *jsonschema.ValidationError) []mistake {
	parent, ok := strings.CutSuffix(e.SchemaURL, "/unevaluatedProperties")
	last := len(e.InstanceLocation) - 1
	if !ok || last < 0 {
		return append(list, mistake{path: e.InstanceLocation, schema: s.node(e), kind: e.ErrorKind})
	}
	return append(list, mistake{
		path:   e.InstanceLocation[:last],
		schema: object(at(s.doc, strings.TrimPrefix(parent, documentURL))),
		kind:   &kind.AdditionalProperties{Properties: e.InstanceLocation[last:]},
		names:  e.InstanceLocation[last:],
	})
}

// dropFollowing removes from list[from:] the unknown properties of values with other mistakes: if
// one part of a composed schema does not fit, its properties seem unknown.
func dropFollowing(list []mistake, from int) []mistake {
	other := make(map[string]bool)
	for _, m := range list[from:] {
		if k, ok := m.kind.(*kind.AdditionalProperties); !ok || len(k.Properties) == 0 {
			for n := range len(m.path) + 1 {
				other[strings.Join(m.path[:n], "\x00")] = true
			}
		}
	}
	kept := list[:from]
	for _, m := range list[from:] {
		_, unknown := m.kind.(*kind.AdditionalProperties)
		if unknown && m.schema["unevaluatedProperties"] == false && other[strings.Join(m.path, "\x00")] {
			continue
		}
		kept = append(kept, m)
	}
	return kept
}

// alternatives reduces a failed anyOf or oneOf to the alternative that the value's type indicates,
// or to the accepted types.
func (s *Schema) alternatives(list []mistake, e *jsonschema.ValidationError) []mistake {
	var types []string
	var meant [][]mistake
	for _, cause := range e.Causes {
		below := s.flatten(nil, cause)
		if len(below) == 1 && below[0].either != nil && len(below[0].path) == len(e.InstanceLocation) {
			types = append(types, below[0].either...)
			continue
		}
		meant = append(meant, below)
	}
	switch {
	case len(meant) == 1:
		return append(list, meant[0]...)
	case len(meant) == 0 && len(types) > 0:
		slices.Sort(types)
		return append(list, mistake{
			path: e.InstanceLocation, schema: s.node(e), kind: &kind.Type{}, either: slices.Compact(types),
		})
	}
	return append(list, mistake{path: e.InstanceLocation, schema: s.node(e), kind: e.ErrorKind})
}

// node returns the schema of a validation error.
func (s *Schema) node(e *jsonschema.ValidationError) map[string]any {
	return object(at(s.doc, strings.TrimPrefix(e.SchemaURL, documentURL)))
}

// firstLeaf returns the first error without further causes.
func firstLeaf(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	return e
}

// properties returns the properties that a schema declares, including those of schemas that
// describe the same value.
func (s *Schema) properties(schema map[string]any) map[string]map[string]any {
	found := make(map[string]map[string]any)
	s.addProperties(found, schema, 0)
	return found
}

func (s *Schema) addProperties(found map[string]map[string]any, schema map[string]any, depth int) {
	const deepest = 8 // a schema may refer to itself
	if depth > deepest {
		return
	}
	for name, sub := range object(schema["properties"]) {
		if found[name] == nil {
			found[name] = object(sub)
		}
	}
	if ref, ok := schema["$ref"].(string); ok {
		s.addProperties(found, object(at(s.doc, ref)), depth+1)
	}
	_ = subschemas(schema, func(_ []string, sub any, pos position) error {
		if pos == inPlace {
			s.addProperties(found, object(sub), depth+1)
		}
		return nil
	})
}
