package sdk

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/sdk/tool"
)

// purpose is the use of a schema. The types that are allowed depend on it.
type purpose int

const (
	arguments purpose = iota + 1
	results
	settingsOf
)

// keywordUnit marks an integer in settings that people write with a unit:
// "bytes" ([tool.ByteSize]) or "duration" ([time.Duration], nanoseconds).
const (
	keywordUnit  = "x-unit"
	unitBytes    = "bytes"
	unitDuration = "duration"
)

// inferred is the JSON schema of a Go type and the properties derived from it.
type inferred struct {
	schema json.RawMessage
	// properties are the names at the top level.
	properties []string
	// defaults are decoded before the data.
	defaults defaults
	// bounds are checked in the data; nil means none.
	bounds   *bounds
	mistakes []DefinitionError
}

// infer returns the JSON Schema of t. It collects all mistakes: an author wants
// to see them at once.
func infer(t reflect.Type, use purpose) inferred {
	i := &inferrer{use: use}
	s := i.schemaOf(t, place{})
	if s == nil {
		return inferred{mistakes: i.mistakes}
	}
	switch s.Type {
	case "object":
	case "":
		i.mistake("", "type %s writes JSON of its own, so its schema is not known; use a struct, or return a tool.Result", t)
	default:
		i.mistake("", "type %s is not written as a JSON object", t)
	}
	out := inferred{properties: slices.Sorted(maps.Keys(s.Properties)), defaults: defaultsOf(s), bounds: boundsOf(s)}
	var err error
	if out.schema, err = json.Marshal(s); err != nil {
		i.mistake("", "%v", err)
	}
	out.mistakes = i.mistakes
	return out
}

type inferrer struct {
	use      purpose
	mistakes []DefinitionError
}

func (i *inferrer) mistake(field, format string, args ...any) {
	i.mistakes = append(i.mistakes, DefinitionError{Field: field, Reason: fmt.Sprintf(format, args...)})
}

// place is the position of a type within the outermost type.
type place struct {
	path   string
	above  []reflect.Type
	listed bool // below a list, a map or a pointer
}

// below returns the place of a type that t, which is at p, contains.
func (p place) below(t reflect.Type, path string, listed bool) place {
	return place{path: path, above: append(slices.Clip(p.above), t), listed: p.listed || listed}
}

// schemaOf returns the schema of t. If t has none, it notes the mistake and
// returns nil.
//
// The schema does not allow null for a list or a map: a caller leaves the
// argument out, and results have empty ones (see [nils]). A nil pointer in a
// result is null.
func (i *inferrer) schemaOf(t reflect.Type, at place) *jsonschema.Schema {
	if t.Kind() == reflect.Pointer {
		at.listed = at.listed || at.path != ""
		s := i.schemaOf(indirect(t), at)
		if s != nil && s.Type != "" && i.use == results {
			s.Type, s.Types = "", []string{"null", s.Type}
		}
		return s
	}
	if slices.Contains(at.above, t) {
		i.mistake(at.path, "type %s contains itself", t)
		return nil
	}
	if s, ok := i.special(t, at.path); ok {
		return s
	}
	switch t.Kind() {
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}
	case reflect.Float32, reflect.Float64:
		return &jsonschema.Schema{Type: "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return integer(t)
	case reflect.Slice, reflect.Array:
		return i.list(t, at)
	case reflect.Map:
		return i.dictionary(t, at)
	case reflect.Struct:
		return i.object(t, at)
	case reflect.Interface:
		if i.use == results {
			return &jsonschema.Schema{}
		}
		i.mistake(at.path, "type %s can hold anything, so its schema has no type; use a struct or a basic type", t)
	default:
		i.mistake(at.path, "type %s has no JSON form", t)
	}
	return nil
}

// integer returns a schema with the bounds of small and of unsigned types.
func integer(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "integer"}
	unsigned := t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64
	switch {
	case unsigned && t.Bits() < 64:
		s.Minimum, s.Maximum = new(0.0), new(math.Exp2(float64(t.Bits()))-1)
	case unsigned:
		s.Minimum = new(0.0)
	case t.Bits() < 64:
		half := math.Exp2(float64(t.Bits() - 1))
		s.Minimum, s.Maximum = new(-half), new(half-1)
	}
	return s
}

func (i *inferrer) list(t reflect.Type, at place) *jsonschema.Schema {
	items := i.schemaOf(t.Elem(), at.below(t, at.path+"[]", true))
	if items == nil {
		return nil
	}
	s := &jsonschema.Schema{Type: "array", Items: items}
	if t.Kind() == reflect.Array {
		s.MinItems, s.MaxItems = new(t.Len()), new(t.Len())
	}
	return s
}

func (i *inferrer) dictionary(t reflect.Type, at place) *jsonschema.Schema {
	keyed := t.Key().Kind() == reflect.String
	if !keyed {
		i.mistake(at.path, "a map's keys must be strings, not %s", t.Key())
	}
	values := i.schemaOf(t.Elem(), at.below(t, at.path+"{}", true))
	if values == nil || !keyed {
		return nil
	}
	return &jsonschema.Schema{Type: "object", AdditionalProperties: values}
}

func (i *inferrer) object(t reflect.Type, at place) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type:                 "object",
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}, // false: no others
	}
	i.checkEmbedded(t, at.path)
	taken := map[string]string{} // name or alias -> property
	fields := jsonFields(t)
	if len(fields) > 0 {
		s.Properties = make(map[string]*jsonschema.Schema, len(fields))
	}
	for _, f := range fields {
		if taken[f.name] != "" {
			i.mistake(join(at.path, f.name), "two fields have this JSON name")
		}
		taken[f.name] = f.name
	}
	for _, f := range fields {
		path := join(at.path, f.name)
		i.checkTags(f, path)
		property := i.schemaOf(f.Type, at.below(t, path, false))
		if property == nil {
			continue // its type was refused
		}
		property.Description = f.Tag.Get("jsonschema")
		i.applyTags(f, property, path, at)
		for _, alias := range aliases(property) {
			if other := taken[alias]; other != "" {
				i.mistake(path, "alias %q is already a name of %q", alias, other)
			}
			taken[alias] = f.name
		}
		s.Properties[f.name] = property
		s.PropertyOrder = append(s.PropertyOrder, f.name)
		// A field with a default is optional, whatever its other tags are.
		if !f.optional && property.Default == nil {
			s.Required = append(s.Required, f.name)
		}
	}
	if n := countRaw(s); n > 1 {
		i.mistake(at.path, "%d fields are marked raw, at most one can take the bare string", n)
	}
	return s
}

// special returns the schema of a type whose JSON does not follow from its kind.
// It reports false for other types.
func (i *inferrer) special(t reflect.Type, path string) (*jsonschema.Schema, bool) {
	text := &jsonschema.Schema{Type: "string"}
	switch {
	case t == reflect.TypeFor[time.Time]():
		text.Format = "date-time"
		return text, true
	case t == reflect.TypeFor[tool.ByteSize]():
		return i.withUnit(unitBytes), true
	case t == reflect.TypeFor[time.Duration]():
		if i.use == arguments {
			i.mistake(path, "type time.Duration would be nanoseconds to a model; use an integer and name its unit")
			return nil, true
		}
		return i.withUnit(unitDuration), true
	case t == reflect.TypeFor[JSON]() && i.use == arguments:
		return &jsonschema.Schema{Types: []string{"object", "array", "string", "number", "boolean"}}, true
	case implements[json.Unmarshaler](t) || implements[json.Marshaler](t):
		return i.ownJSON(t, path), true
	case implements[encoding.TextUnmarshaler](t) || implements[encoding.TextMarshaler](t):
		return text, true
	case isBytes(t):
		text.ContentEncoding = "base64"
		return text, true
	}
	return nil, false
}

func (i *inferrer) withUnit(unit string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "integer"}
	if i.use == settingsOf {
		s.Extra = map[string]any{keywordUnit: unit}
	}
	return s
}

// ownJSON handles a type that encodes or decodes itself. Its schema is not known.
func (i *inferrer) ownJSON(t reflect.Type, path string) *jsonschema.Schema {
	if i.use == results {
		return &jsonschema.Schema{}
	}
	i.mistake(path, "type %s has JSON of its own, so its schema is not known; use a struct or a basic type", t)
	return nil
}

// isBytes reports whether encoding/json writes t as base64.
func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 &&
		!implements[json.Marshaler](t.Elem()) && !implements[encoding.TextMarshaler](t.Elem())
}

// implements reports whether t or a pointer to it implements I. Both count,
// because results are encoded by their address.
func implements[I any](t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[I]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[I]())
}

func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
