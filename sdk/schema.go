package sdk

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/sdk/tool"
)

// purpose is what a schema is made for: what a type may hold depends on it.
type purpose int

const (
	arguments purpose = iota + 1
	results
	settingsOf
)

// keywordUnit marks an integer of the settings that people write with a unit:
// "bytes" ([tool.ByteSize]) or "duration" ([time.Duration], nanoseconds).
const keywordUnit = "x-unit"

// notADescription matches what jsonschema-go refuses as one.
var notADescription = regexp.MustCompile(`^($|[^ \t\n]*=)`)

// inferred is what a Go type says about its JSON.
type inferred struct {
	schema json.RawMessage
	// properties are the names at the top level.
	properties []string
	// defaults is a JSON object to decode before the data; nil if there are
	// none.
	defaults json.RawMessage
	mistakes []DefinitionError
}

// infer makes the JSON Schema of t. It never gives up at the first mistake:
// an author wants to see them all.
func infer(t reflect.Type, use purpose) inferred {
	i := &inferrer{use: use, types: map[reflect.Type]*jsonschema.Schema{}}
	i.survey(t, "", nil)
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{IgnoreInvalidTypes: true, TypeSchemas: i.types})
	if err != nil {
		if len(i.mistakes) == 0 {
			i.mistake("", "%v", err)
		}
		return inferred{mistakes: i.mistakes}
	}
	out := inferred{}
	if defaults := i.decorate(t, schema, "", false); len(defaults) > 0 {
		// Raw messages that were checked before: Marshal cannot fail.
		out.defaults, _ = json.Marshal(defaults)
	}
	out.properties = slices.Sorted(maps.Keys(schema.Properties))
	if out.schema, err = json.Marshal(schema); err != nil {
		i.mistake("", "%v", err)
	}
	out.mistakes = i.mistakes
	return out
}

type inferrer struct {
	use      purpose
	types    map[reflect.Type]*jsonschema.Schema // types with a form of their own
	mistakes []DefinitionError
}

func (i *inferrer) mistake(field, format string, args ...any) {
	i.mistakes = append(i.mistakes, DefinitionError{Field: field, Reason: fmt.Sprintf(format, args...)})
}

// survey finds the types that have no JSON Schema, by the path of the field,
// and those that have one of their own.
func (i *inferrer) survey(t reflect.Type, path string, above []reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if slices.Contains(above, t) {
		i.mistake(path, "type %s contains itself", t)
		return
	}
	if i.special(t, path) {
		return
	}
	above = append(above, t)
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
	case reflect.Slice, reflect.Array:
		i.survey(t.Elem(), path+"[]", above)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			i.mistake(path, "a map's keys must be strings, not %s", t.Key())
		}
		i.survey(t.Elem(), path+"{}", above)
	case reflect.Struct:
		for _, f := range jsonFields(t) {
			at := join(path, f.name)
			if tag, ok := f.Tag.Lookup("jsonschema"); ok && notADescription.MatchString(tag) {
				i.mistake(at, "the jsonschema tag is %q; it is the description and must not be empty or begin with \"word=\"", tag)
			}
			i.survey(f.Type, at, above)
		}
	case reflect.Interface:
		if i.use != results {
			i.mistake(path, "type %s can hold anything, so its schema has no type; use a struct or a basic type", t)
		}
	default:
		i.mistake(path, "type %s has no JSON form", t)
	}
}

// special notes the schema of a type whose JSON is not that of its kind.
func (i *inferrer) special(t reflect.Type, path string) bool {
	s := &jsonschema.Schema{Type: "string"}
	switch {
	case t == reflect.TypeFor[time.Time]():
		s.Format = "date-time"
	case t == reflect.TypeFor[tool.ByteSize](), t == reflect.TypeFor[time.Duration]():
		unit := "bytes"
		if t == reflect.TypeFor[time.Duration]() {
			unit = "duration"
		}
		s = &jsonschema.Schema{Type: "integer"}
		if i.use == settingsOf {
			s.Extra = map[string]any{keywordUnit: unit}
		} else if i.use == arguments && unit == "duration" {
			i.mistake(path, "type time.Duration would be nanoseconds to a model; use an integer and name its unit")
		}
	case t.Kind() == reflect.Slice && t.Elem() == reflect.TypeFor[byte]():
		if t == reflect.TypeFor[json.RawMessage]() {
			return i.ownJSON(t, path)
		}
		s.ContentEncoding = "base64"
	case implements[json.Unmarshaler](t) || implements[json.Marshaler](t):
		return i.ownJSON(t, path)
	case implements[encoding.TextUnmarshaler](t) || implements[encoding.TextMarshaler](t):
	default:
		return false
	}
	i.types[t] = s
	return true
}

// ownJSON handles a type that writes or reads its own JSON, whose form only
// its author knows.
func (i *inferrer) ownJSON(t reflect.Type, path string) bool {
	if i.use != results {
		i.mistake(path, "type %s has JSON of its own, so its schema is not known; use a struct or a basic type", t)
	}
	i.types[t] = &jsonschema.Schema{}
	return true
}

func implements[I any](t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[I]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[I]())
}

// decorate adds to s what the struct tags say and returns the defaults of an
// object. listed says that t is below a list, a map or a pointer.
func (i *inferrer) decorate(t reflect.Type, s *jsonschema.Schema, path string, listed bool) map[string]json.RawMessage {
	i.normalise(s)
	for t.Kind() == reflect.Pointer {
		t, listed = t.Elem(), listed || path != ""
	}
	if i.types[t] != nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if s.Items != nil {
			i.decorate(t.Elem(), s.Items, path+"[]", true)
		}
	case reflect.Map:
		if s.AdditionalProperties != nil {
			i.decorate(t.Elem(), s.AdditionalProperties, path+"{}", true)
		}
	case reflect.Struct:
		return i.decorateStruct(t, s, path, listed)
	}
	return nil
}

func (i *inferrer) decorateStruct(t reflect.Type, s *jsonschema.Schema, path string, listed bool) map[string]json.RawMessage {
	defaults := map[string]json.RawMessage{}
	taken := map[string]string{} // name or alias -> property
	fields := jsonFields(t)
	for _, f := range fields {
		if other := taken[f.name]; other != "" {
			i.mistake(join(path, f.name), "two fields have this JSON name")
		}
		taken[f.name] = f.name
	}
	for _, f := range fields {
		property := s.Properties[f.name]
		at := join(path, f.name)
		if f.named {
			i.mistake(at, "an embedded struct cannot have a JSON name; give the field a name instead")
			continue
		}
		if property == nil {
			continue // its type was refused
		}
		nested := i.decorate(f.Type, property, at, listed)
		i.applyTags(f, property, at, path == "")
		for _, alias := range aliases(property) {
			if other := taken[alias]; other != "" {
				i.mistake(at, "alias %q is already a name of %q", alias, other)
			}
			taken[alias] = f.name
		}
		switch {
		case property.Default != nil && listed:
			i.mistake(at, "a default cannot be given below a list, a map or a pointer; fill it in in the function")
		case property.Default != nil:
			// What has a default need not be given, whatever else the tags say.
			s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return name == f.name })
			defaults[f.name] = property.Default
		case len(nested) > 0:
			defaults[f.name], _ = json.Marshal(nested)
		}
	}
	if n := countRaw(s); n > 1 {
		i.mistake(path, "%d fields are marked raw, at most one can take the bare string", n)
	}
	return defaults
}

// normalise takes back the null that jsonschema-go allows wherever Go has a
// nil: a model need not know. Results keep it, since a nil slice is written as
// null.
func (i *inferrer) normalise(s *jsonschema.Schema) {
	if i.use != results {
		s.Types = slices.DeleteFunc(s.Types, func(name string) bool { return name == "null" })
	} else if len(s.Types) == 1 && s.Types[0] == "null" {
		s.Types = nil // a pointer to anything is still anything
	}
	if len(s.Types) == 1 {
		s.Type, s.Types = s.Types[0], nil
	}
}

// jsonField is a field as encoding/json sees it.
type jsonField struct {
	reflect.StructField
	name   string
	quoted bool // ",string"
	named  bool // embedded, with a name of its own
}

func jsonFields(t reflect.Type) []jsonField {
	var fields []jsonField
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || (!f.IsExported() && !f.Anonymous) || (f.Anonymous && name == "") {
			continue
		}
		if name == "" {
			name = f.Name
		}
		quoted := slices.Contains(strings.Split(options, ","), "string")
		fields = append(fields, jsonField{StructField: f, name: name, quoted: quoted, named: f.Anonymous})
	}
	return fields
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
