package sdk

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
)

// defaults are the defaults of an object's properties, by name.
type defaults map[string]fallback

// fallback is the default of a property, or of the properties in it.
type fallback struct {
	value json.RawMessage
	parts defaults
}

// defaultsOf collects the defaults of an object and of the objects in it.
func defaultsOf(s *jsonschema.Schema) defaults {
	found := defaults{}
	for name, property := range s.Properties {
		f := fallback{property.Default, defaultsOf(property)}
		if f.value != nil || len(f.parts) > 0 {
			found[name] = f
		}
	}
	return found
}

// missing returns an object with the defaults of the properties that given lacks,
// or nil. It is decoded before given. A given property replaces its default as a
// whole: the JSON decoder would add to an existing map, list or struct.
func (d defaults) missing(given json.RawMessage) json.RawMessage {
	if len(d) == 0 {
		return nil
	}
	var properties map[string]json.RawMessage
	if d.compound() {
		_ = json.Unmarshal(given, &properties) // another type has no properties
	}
	out := map[string]json.RawMessage{}
	for name, f := range d {
		value := properties[name]
		if f.value != nil && (value == nil || string(value) == "null") {
			out[name] = f.value
		} else if parts := f.parts.missing(value); parts != nil {
			out[name] = parts
		}
	}
	if len(out) == 0 {
		return nil
	}
	all, _ := json.Marshal(out) // cannot fail: the messages were checked before
	return all
}

// compound reports whether a default is an object or a list. Decoding overwrites
// other defaults.
func (d defaults) compound() bool {
	for _, f := range d {
		if f.parts.compound() || f.value != nil && (f.value[0] == '{' || f.value[0] == '[') {
			return true
		}
	}
	return false
}
