package sdk

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toolhost/toolhost/sdk/tool"
)

// The struct tags of this package, besides `json` and `jsonschema`.
const (
	tagEnum    = "enum"    // enum:"text,binary": the allowed values
	tagDefault = "default" // default:"text": the value if the caller gives none
	tagMin     = "min"     // min:"1": the least value, length of a string, or number of items
	tagMax     = "max"     // max:"100": the greatest
	tagRole    = "role"    // role:"path": the meaning, see tool.Role
	tagAlias   = "alias"   // alias:"cmd,script": other names
	tagRaw     = "raw"     // raw:"true": takes a bare string as the whole arguments
)

// applyTags puts the tags of a field into the schema of its property. above is
// the place of the object that has the property.
func (i *inferrer) applyTags(f jsonField, s *jsonschema.Schema, at string, above place) {
	i.applyEnum(f, s, at)
	i.applyBounds(f, s, at)
	i.applyDefault(f, s, at, above.listed)
	i.applyRole(f, s, at)
	i.applyAliases(f, s, at)
	i.applyRaw(f, s, at, above.path == "")
}

func (i *inferrer) applyEnum(f jsonField, s *jsonschema.Schema, at string) {
	tag, ok := f.Tag.Lookup(tagEnum)
	if !ok {
		return
	}
	t := indirect(f.Type)
	if s.Items != nil && t.Kind() == reflect.Slice {
		// The enum of a list lists the values of its items.
		s, t = s.Items, indirect(t.Elem())
	}
	if tag == "" {
		i.mistake(at, "the enum is empty; expected values separated by commas, such as `enum:\"text,binary\"`")
		return
	}
	var values []any
	for text := range strings.SplitSeq(tag, ",") {
		if strings.TrimSpace(text) == "" {
			i.mistake(at, "enum %q contains an empty value", tag)
			return
		}
		raw, err := parseTag(t, strings.TrimSpace(text))
		if err != nil {
			i.mistake(at, "enum value %q does not fit: %v", text, err)
			return
		}
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			i.mistake(at, "enum value %q does not fit: %v", text, err)
			return
		}
		if slices.Contains(values, value) {
			i.mistake(at, "enum value %q is listed twice", text)
		}
		values = append(values, value)
	}
	s.Enum = values
}

func (i *inferrer) applyDefault(f jsonField, s *jsonschema.Schema, at string, listed bool) {
	tag, ok := f.Tag.Lookup(tagDefault)
	switch {
	case !ok:
		return
	case i.use == results:
		i.mistake(at, "a result has no defaults")
		return
	case listed:
		i.mistake(at, "a default cannot be given below a list, a map or a pointer; set it in the function")
		return
	}
	raw, err := parseTag(f.Type, tag)
	if err != nil {
		i.mistake(at, "default %q does not fit: %v", tag, err)
		return
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		i.mistake(at, "default %q does not fit: %v", tag, err)
		return
	}
	resolved, err := s.CloneSchemas().Resolve(nil)
	if err != nil {
		i.mistake(at, "schema: %v", err)
		return
	}
	if err := resolved.Validate(value); err != nil {
		if len(s.Enum) > 0 {
			i.mistake(at, "default %q is not in the enum (%s)", tag, enumText(s.Enum))
			return
		}
		i.mistake(at, "default %q does not fit: %v", tag, err)
		return
	}
	s.Default = raw
}

func (i *inferrer) applyRole(f jsonField, s *jsonschema.Schema, at string) {
	tag, ok := f.Tag.Lookup(tagRole)
	if !ok || i.use == results {
		return
	}
	if !tool.Role(tag).Valid() {
		i.mistake(at, "role %q is not known, expected one of %s", tag, list(tool.Roles()))
		return
	}
	if s.Type != "string" && (s.Items == nil || s.Items.Type != "string") {
		i.mistake(at, "role %q needs a string or a list of strings", tag)
		return
	}
	if tool.Role(tag) == tool.RoleArgv && s.Type == "string" {
		i.mistake(at, "role %q needs a list of strings", tag)
		return
	}
	setKeyword(s, tool.KeywordRole, tag)
}

func (i *inferrer) applyAliases(f jsonField, s *jsonschema.Schema, at string) {
	tag, ok := f.Tag.Lookup(tagAlias)
	if !ok || i.use != arguments {
		return
	}
	names := strings.Split(tag, ",")
	for n, name := range names {
		names[n] = strings.TrimSpace(name)
		if names[n] == "" {
			i.mistake(at, "alias %q contains an empty name", tag)
			return
		}
	}
	setKeyword(s, tool.KeywordAliases, names)
}

func (i *inferrer) applyRaw(f jsonField, s *jsonschema.Schema, at string, top bool) {
	tag, ok := f.Tag.Lookup(tagRaw)
	switch {
	case !ok || i.use != arguments:
	case tag != "true":
		i.mistake(at, "tag raw is %q, expected \"true\"", tag)
	case !top:
		i.mistake(at, "only a field of the arguments themselves can be raw")
	case s.Type != "string":
		i.mistake(at, "only a string can be raw")
	default:
		setKeyword(s, tool.KeywordRaw, true)
	}
}

// parseTag returns the text of a tag as JSON of type t.
func parseTag(t reflect.Type, text string) (json.RawMessage, error) {
	t = indirect(t)
	switch {
	case t == reflect.TypeFor[tool.ByteSize]():
		size, err := tool.ParseByteSize(text)
		if err != nil {
			return nil, err
		}
		return json.Marshal(int64(size))
	case t == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("expected a duration such as \"30s\": %w", err)
		}
		return json.Marshal(int64(d))
	}
	raw := json.RawMessage(text)
	if t.Kind() == reflect.String || !json.Valid(raw) {
		// Text without quotes is a string, or is read by the type itself.
		quoted, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		raw = quoted
	}
	if err := json.Unmarshal(raw, reflect.New(t).Interface()); err != nil {
		return nil, fmt.Errorf("expected %s", t)
	}
	return raw, nil
}

// enumText lists the values of an enum, strings in quotes.
func enumText(values []any) string {
	texts := make([]string, len(values))
	for n, value := range values {
		texts[n] = fmt.Sprintf("%v", value)
		if text, ok := value.(string); ok {
			texts[n] = strconv.Quote(text)
		}
	}
	return strings.Join(texts, ", ")
}

func setKeyword(s *jsonschema.Schema, keyword string, value any) {
	if s.Extra == nil {
		s.Extra = map[string]any{}
	}
	s.Extra[keyword] = value
}

func aliases(s *jsonschema.Schema) []string {
	names, _ := s.Extra[tool.KeywordAliases].([]string)
	return names
}

func countRaw(s *jsonschema.Schema) int {
	n := 0
	for _, property := range s.Properties {
		if property.Extra[tool.KeywordRaw] == true {
			n++
		}
	}
	return n
}
