package schema

import (
	"maps"
	"slices"
)

// filled returns a value with the defaults of properties that it does not have, at
// any depth of the objects that it has, and whether there were any. The value itself
// is not changed. Defaults that hold under a condition only are left to the plugin.
func (s *Schema) filled(schema map[string]any, value any, depth int) (any, bool) {
	const deepest = 8 // a schema may refer to itself
	given, ok := value.(map[string]any)
	if !ok || depth > deepest {
		return value, false
	}
	changed := false
	set := func(name string, to any) {
		if !changed {
			given, changed = maps.Clone(given), true
		}
		given[name] = to
	}
	for name, sub := range object(schema["properties"]) {
		below := object(sub)
		if current, has := given[name]; !has {
			if value, has := below["default"]; has {
				set(name, value)
			}
		} else if next, any := s.filled(below, current, depth+1); any {
			set(name, next)
		}
	}
	same, _ := schema["allOf"].([]any)
	if ref, ok := schema["$ref"].(string); ok {
		same = append(slices.Clip(same), at(s.doc, ref))
	}
	for _, sub := range same {
		if next, any := s.filled(object(sub), given, depth+1); any {
			given, changed = object(next), true
		}
	}
	return given, changed
}
