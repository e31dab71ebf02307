package sdk

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
)

// defaults are the defaults of an object's properties, by name.
type defaults map[string]fallback

// fallback is what a property is if it is not given: a value of its own, or
// what the properties in it are.
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

// missing returns an object with the defaults of all that the given object
// leaves out, to be decoded before it; nil if there are none. The JSON decoder
// adds to a map, a list or a struct that is there: what is given takes the
// place of a default as a whole.
func (d defaults) missing(given json.RawMessage) json.RawMessage {
	if len(d) == 0 {
		return nil
	}
	var properties map[string]json.RawMessage
	if d.compound() {
		_ = json.Unmarshal(given, &properties) // what is no object gives nothing
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

// compound reports whether some default is more than one value: any other is
// overwritten by what is given.
func (d defaults) compound() bool {
	for _, f := range d {
		if f.parts.compound() || f.value != nil && (f.value[0] == '{' || f.value[0] == '[') {
			return true
		}
	}
	return false
}
