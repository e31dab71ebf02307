package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Limits of one schema. A host refuses larger ones.
const (
	maxSchema = 256 << 10
	maxDepth  = 64
)

// input returns the schema of a tool's arguments as the plugin contract has it: an object, whose
// texts show every character, without keywords of the contract that the server has set, and with
// the roles of the configuration.
func input(schema any, roles map[string]string) (json.RawMessage, error) {
	root, err := object(schema)
	if err != nil {
		return nil, err
	}
	if _, given := root["type"]; !given {
		root["type"] = "object"
	}
	if root["type"] != "object" {
		return nil, fmt.Errorf("its arguments are of type %s, expected an object", written(root["type"]))
	}
	if err := clean(root, 0); err != nil {
		return nil, err
	}
	if err := addRoles(root, roles); err != nil {
		return nil, err
	}
	return encode(root)
}

// output returns the schema of structured results; nil if there is none, or if the results are not
// objects, which the contract cannot describe.
func output(schema any) (json.RawMessage, error) {
	if schema == nil {
		return nil, nil
	}
	root, err := object(schema)
	if err != nil {
		return nil, err
	}
	if root["type"] != "object" {
		return nil, nil
	}
	if err := clean(root, 0); err != nil {
		return nil, err
	}
	return encode(root)
}

// object returns a schema as an object of its own, which can be changed: the MCP client keeps the
// server's, whose keyword x-mcp-header names arguments that it also sends as headers. A missing schema allows any arguments,
// and so does true.
func object(schema any) (map[string]any, error) {
	switch s := schema.(type) {
	case nil:
		return map[string]any{"properties": map[string]any{}}, nil
	case bool:
		if s {
			return map[string]any{}, nil
		}
	case map[string]any:
		root, _ := clone(s).(map[string]any)
		return root, nil
	}
	return nil, fmt.Errorf("its schema is %s, expected an object", written(schema))
}

// clone copies a JSON value.
func clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, below := range v {
			object[name] = clone(below)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, below := range v {
			list[i] = clone(below)
		}
		return list
	}
	return value
}

func encode(root map[string]any) (json.RawMessage, error) {
	raw, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes, more than the %s that are allowed", len(raw), tool.ByteSize(maxSchema))
	}
	return raw, nil
}

var (
	// named are the keywords whose values map names to schemas.
	named = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	// texts are the keywords for people and models.
	texts = []string{"title", "description", "$comment"}
	// values are the keywords whose values are data, in which no word is a keyword.
	values = []string{"const", "default", "enum", "examples"}
)

// clean removes the keywords of the plugin contract from a schema and the schemas in it: by them
// a server could hide an argument from those who approve its calls. It makes every character of
// texts visible, and refuses names and values with invisible characters.
func clean(schema map[string]any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("its schema is nested deeper than %d levels", maxDepth)
	}
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		value := schema[keyword]
		text, isText := value.(string)
		below, isObject := value.(map[string]any)
		switch {
		case strings.HasPrefix(keyword, "x-"):
			delete(schema, keyword)
		case isText && slices.Contains(texts, keyword):
			schema[keyword] = display.Visible(text)
		case slices.Contains(values, keyword):
			if err := visible(value, depth); err != nil {
				return fmt.Errorf("%s: %w", keyword, err)
			}
		case isObject && slices.Contains(named, keyword):
			if err := cleanNamed(below, depth); err != nil {
				return err
			}
		default:
			if display.Visible(keyword) != keyword {
				return fmt.Errorf("its schema has the keyword %s, with invisible characters", display.Name(keyword))
			}
			if err := cleanBelow(value, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// cleanNamed cleans schemas by their names.
func cleanNamed(schemas map[string]any, depth int) error {
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if display.Visible(name) != name {
			return fmt.Errorf("its schema has the name %s, with invisible characters", display.Name(display.Cut(name, 80)))
		}
		if err := cleanBelow(schemas[name], depth); err != nil {
			return err
		}
	}
	return nil
}

// cleanBelow cleans the value of a keyword: a schema, a list of them, or a plain value.
func cleanBelow(value any, depth int) error {
	switch v := value.(type) {
	case map[string]any:
		return clean(v, depth+1)
	case []any:
		for _, item := range v {
			if err := cleanBelow(item, depth+1); err != nil {
				return err
			}
		}
	case string:
		return visible(v, depth)
	}
	return nil
}

// contract are the keywords by which a plugin tells the host what an argument means.
var contract = []string{tool.KeywordRole, tool.KeywordAliases, tool.KeywordRaw}

// visible refuses data with invisible characters: it cannot be escaped without another meaning. It
// refuses keywords of the contract, too, since a reference can use data as a schema.
func visible(value any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("its schema is nested deeper than %d levels", maxDepth)
	}
	switch v := value.(type) {
	case string:
		if display.Visible(v) != v {
			return fmt.Errorf("its schema has the value %s, with invisible characters", display.Name(display.Cut(v, 80)))
		}
	case []any:
		for _, item := range v {
			if err := visible(item, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if slices.Contains(contract, name) {
				return fmt.Errorf("its schema has the keyword %s in a value", name)
			}
			if err := errors.Join(visible(name, depth+1), visible(v[name], depth+1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// addRoles sets the roles of arguments.
func addRoles(root map[string]any, roles map[string]string) error {
	properties, _ := root["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		property, known := properties[name]
		if !known {
			return &RoleError{Argument: name, Known: slices.Sorted(maps.Keys(properties))}
		}
		schema, ok := property.(map[string]any)
		if !ok { // true: any value
			schema = map[string]any{}
			properties[name] = schema
		}
		schema[tool.KeywordRole] = roles[name]
	}
	return nil
}

// RoleError reports a role for an argument that the tool does not have. The tool is not offered,
// since the rules for that role would not hold for it.
type RoleError struct {
	Argument string
	Known    []string
}

// Error implements error.
func (e *RoleError) Error() string {
	return fmt.Sprintf("the configuration gives a role to its argument %s, which it does not have", display.Name(e.Argument))
}

func written(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return "not JSON"
	}
	return display.Visible(display.Cut(string(raw), 80))
}
