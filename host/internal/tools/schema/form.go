package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/toolhost/toolhost/internal/lazyregexp"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Limits of forms.
const (
	// MaxForm is the largest text of a form's schema.
	MaxForm = 16 * tool.KiB
	// maxFields is how many fields a form has at most.
	maxFields = 32
)

// Form is the compiled schema of a person's answer: an object with single values, which any client
// can show as fields. It is immutable and safe for concurrent use.
type Form struct {
	schema *Schema
	public json.RawMessage
}

// CompileForm reads the schema of an answer. It makes every character of titles and descriptions
// visible, and refuses what a form cannot show. The error names the place and the rule. An empty
// schema is a form without fields, which can only be accepted or declined.
func CompileForm(input json.RawMessage) (*Form, error) {
	if len(input) == 0 {
		input = json.RawMessage(`{"type":"object"}`)
	}
	if len(input) > int(MaxForm) {
		return nil, fmt.Errorf("%d bytes, more than the %s that are allowed", len(input), MaxForm)
	}
	compiled, err := read(input, false)
	if err == nil {
		err = compiled.compile()
	}
	if err != nil {
		return nil, err
	}
	value, err := parse(compiled.Public(), 0)
	if err != nil {
		return nil, err
	}
	doc := object(value)
	fields := object(doc["properties"])
	if len(fields) > maxFields {
		return nil, fmt.Errorf("at /properties: %d properties, more than the %d of a form", len(fields), maxFields)
	}
	for _, keyword := range slices.Sorted(maps.Keys(doc)) {
		if !slices.Contains(rootKeywords, keyword) {
			return nil, fmt.Errorf("at %s: a form cannot have this keyword at the root", pointer([]string{keyword}))
		}
	}
	shown := make(map[string]any, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if shown[name], err = field(name, object(fields[name])); err != nil {
			return nil, fmt.Errorf("at %s: %w", pointer([]string{"properties", name}), err)
		}
	}
	// Other keywords at the root are for programs.
	public := map[string]any{"type": "object", "properties": shown}
	if required, ok := doc["required"].([]any); ok {
		for _, name := range required {
			if text, _ := name.(string); fields[text] == nil {
				return nil, fmt.Errorf("at /required: there is no property %s", quote(name))
			}
		}
		public["required"] = required
	}
	return &Form{schema: compiled, public: Canonical(public)}, nil
}

var (
	fieldName    = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
	rootKeywords = []string{"$schema", "type", "properties", "required", "additionalProperties", "title", "description"}
	fieldTypes   = []any{"string", "number", "integer", "boolean"}
	// textKeywords are for people, valueKeywords for programs. Clients know both and
	// would silently ignore others.
	textKeywords  = []string{"title", "description"}
	valueKeywords = []string{
		"type", "enum", "default", "format", "pattern", "minLength", "maxLength",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	}
	// fieldFormats are the formats that MCP allows in forms.
	fieldFormats = []any{"email", "uri", "date", "date-time"}
)

// field returns a property in the form that is shown.
func field(name string, property map[string]any) (map[string]any, error) {
	if !fieldName().MatchString(name) {
		return nil, fmt.Errorf("the name of a form's property must match %s", fieldName())
	}
	if !slices.Contains(fieldTypes, property["type"]) {
		return nil, errors.New("a form's property must be of one type: string, number, integer or boolean")
	}
	if format, ok := property["format"]; ok && !slices.Contains(fieldFormats, format) {
		return nil, fmt.Errorf("the format must be email, uri, date or date-time, got %s", quote(format))
	}
	shown := make(map[string]any, len(property))
	for _, keyword := range slices.Sorted(maps.Keys(property)) {
		value := property[keyword]
		switch {
		case slices.Contains(textKeywords, keyword):
			text, _ := value.(string)
			value = tool.Visible(text)
		case slices.Contains(valueKeywords, keyword):
			if hides(value) {
				return nil, fmt.Errorf("%s has invisible characters", keyword)
			}
		default:
			return nil, fmt.Errorf("a form's property cannot have the keyword %s", quote(keyword))
		}
		shown[keyword] = value
	}
	return shown, nil
}

// hides reports whether a value, which is shown unchanged, has an invisible character.
func hides(value any) bool {
	switch v := value.(type) {
	case string:
		return tool.Visible(v) != v
	case []any:
		return slices.ContainsFunc(v, hides)
	}
	return false
}

// Public returns the schema for clients. The caller must not change it.
func (f *Form) Public() json.RawMessage { return f.public }

// Check returns a valid answer as canonical JSON. It repairs what it can without loss; otherwise
// the error, of code [tool.InvalidArgument], names every mistake.
func (f *Form) Check(answer json.RawMessage) (json.RawMessage, *tool.Error) {
	value, err := Read(answer)
	if err != nil {
		return nil, err
	}
	arguments, err := f.schema.Check(value)
	if err != nil {
		return nil, err
	}
	return arguments.Canonical, nil
}
