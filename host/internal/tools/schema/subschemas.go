package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxDocument is the largest text of a schema.
const maxDocument = 256 * tool.KiB

// readDocument reads a schema, which must be an object.
func readDocument(text json.RawMessage) (map[string]any, error) {
	switch {
	case len(text) == 0:
		return nil, errors.New(`there is none, and every tool needs one; a tool without arguments has {"type": "object"}`)
	case len(text) > int(maxDocument):
		return nil, fmt.Errorf("%d bytes, more than the %s that are allowed", len(text), maxDocument)
	}
	value, err := parse(text, 0)
	if err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	doc, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("expected an object, got %s", typeName(value))
	}
	return doc, nil
}

// position is the relation of a subschema to the schema that contains it.
type position int

const (
	property   position = iota + 1 // it describes a property
	part                           // it describes another part of the value
	definition                     // it describes nothing unless referred to
	inPlace                        // it describes the same value
	condition                      // it is only a test
)

// subschemas calls visit for every direct subschema, in a fixed order, until visit returns an
// error.
func subschemas(schema map[string]any, visit func(path []string, sub any, pos position) error) error {
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		pos := positionOf(keyword)
		if pos == 0 {
			continue
		}
		var err error
		switch below := schema[keyword].(type) {
		case map[string]any:
			if !holdsMany(keyword) {
				err = visit([]string{keyword}, below, pos)
				break
			}
			for _, name := range slices.Sorted(maps.Keys(below)) {
				if err = visit([]string{keyword, name}, below[name], pos); err != nil {
					break
				}
			}
		case []any:
			for i, sub := range below {
				if err = visit([]string{keyword, strconv.Itoa(i)}, sub, pos); err != nil {
					break
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func positionOf(keyword string) position {
	switch keyword {
	case "properties", "patternProperties":
		return property
	case "items", "prefixItems", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "contentSchema":
		return part
	case "$defs", "definitions":
		return definition
	case "allOf", "anyOf", "oneOf", "then", "else", "dependentSchemas":
		return inPlace
	case "if", "not", "contains", "propertyNames":
		return condition
	}
	return 0
}

// holdsMany reports whether the object under a keyword holds schemas by name.
func holdsMany(keyword string) bool {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return true
	}
	return false
}

// at returns the value at a JSON pointer of the form "#/a/b", or nil.
func at(doc map[string]any, fragment string) any {
	path, ok := splitFragment(fragment)
	if !ok {
		return nil
	}
	var value any = doc
	for _, name := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// Escapes of a name in a JSON pointer (RFC 6901, section 3), and their meaning.
var (
	escapePointer   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")
)

// splitFragment returns the names in a JSON pointer of the form "#/a/b".
func splitFragment(fragment string) ([]string, bool) {
	fragment, ok := strings.CutPrefix(fragment, "#")
	if !ok {
		return nil, false
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, false
	}
	if fragment == "" {
		return nil, true
	}
	names := strings.Split(fragment, "/")
	if names[0] != "" {
		return nil, false
	}
	for i, name := range names[1:] {
		names[i+1] = unescapePointer.Replace(name)
	}
	return names[1:], true
}

// pointer returns a path as a JSON pointer for messages.
func pointer(path []string) string {
	if len(path) == 0 {
		return "the root"
	}
	var b strings.Builder
	for _, name := range path {
		b.WriteByte('/')
		b.WriteString(escapePointer.Replace(name))
	}
	return b.String()
}

// object returns value as an object, or nil.
func object(value any) map[string]any {
	o, _ := value.(map[string]any)
	return o
}

// typeName returns the JSON Schema type of a value from [Read].
func typeName(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if rational(v).IsInt() {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}
