package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxDescribed bounds the properties of a description: a small schema can contain itself.
	maxDescribed = 200
	// maxNested bounds how deep properties are in other properties.
	maxNested = 6
	// maxAlternatives bounds the schemas that describe one value.
	maxAlternatives = 32
	// maxVisited bounds how many schemas a description visits, each as often as it is used.
	maxVisited = 10_000
	// maxNamed bounds the values that a type lists.
	maxNamed = 12
	// keywordUnit says that an integer of settings, in nanoseconds or bytes, is written with a
	// unit.
	keywordUnit  = "x-unit"
	unitDuration = "duration"
	unitBytes    = "bytes"
)

// Property describes a property of a schema for a person.
type Property struct {
	// Name is the path of the property: "edits[].path" is the property path of each item of the
	// list edits, and "hosts.NAME.port" the property port of each property of hosts.
	Name string `json:"name"`
	// Type is the type in words, such as "list of string" or "integer, 1 to 100".
	Type     string `json:"type"`
	Required bool   `json:"required,omitempty"`
	// Default is the default value as a person writes it: with its unit if it has one.
	Default json.RawMessage `json:"default,omitempty"`
	// Roles are the roles of the values.
	Roles       []tool.Role `json:"roles,omitempty"`
	Aliases     []string    `json:"aliases,omitempty"`
	Description string      `json:"description,omitempty"`
}

// Arguments describes the arguments: required ones first, at most 200.
func (s *Schema) Arguments() []Property {
	return describe(s.doc)
}

// Describe describes the properties of any schema, such as that of a plugin's settings, like
// [Schema.Arguments]. There are none if it is not a schema.
func Describe(input json.RawMessage) []Property {
	doc, err := readDocument(input)
	if err != nil {
		return nil
	}
	return describe(doc)
}

func describe(doc map[string]any) []Property {
	d := describer{doc: doc, left: maxVisited}
	d.describe(doc, "", 0)
	return d.all
}

// describer collects the properties of a document.
type describer struct {
	doc  map[string]any
	all  []Property
	left int // how many more schemas it may visit
}

// describe adds the properties of the values that a schema describes, and those below them.
func (d *describer) describe(schema map[string]any, prefix string, depth int) {
	properties, required := map[string]map[string]any{}, map[string]bool{}
	for _, part := range d.parts(schema) {
		for name, sub := range object(part["properties"]) {
			if _, refined := properties[name]; !refined && object(sub) != nil {
				properties[name] = object(sub)
			}
		}
		for _, name := range list(part["required"]) {
			text, _ := name.(string)
			required[text] = true
		}
	}
	names := slices.SortedFunc(maps.Keys(properties), func(a, b string) int {
		if required[a] != required[b] {
			if required[a] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		if len(d.all) == maxDescribed {
			return
		}
		d.all = append(d.all, d.property(properties[name], prefix+name, required[name]))
		if depth < maxNested {
			d.below(properties[name], prefix+name, depth+1)
		}
	}
}

// below adds the properties of the values in a property.
func (d *describer) below(property map[string]any, name string, depth int) {
	d.describe(property, name+".", depth)
	for _, part := range d.parts(property) {
		if items := object(part["items"]); items != nil && depth < maxNested {
			d.below(items, name+"[]", depth+1)
		}
		if others := object(part["additionalProperties"]); others != nil && depth < maxNested {
			d.below(others, name+".NAME", depth+1)
		}
	}
}

func (d *describer) property(schema map[string]any, name string, required bool) Property {
	p := Property{Name: name, Type: d.typeOf(schema, 0), Required: required}
	for _, part := range d.parts(schema) {
		if value, ok := part["default"]; ok && p.Default == nil {
			p.Default = Canonical(written(value, part[keywordUnit]))
		}
		if text, _ := part["description"].(string); p.Description == "" {
			p.Description = text
		}
		for _, alias := range list(part[tool.KeywordAliases]) {
			if text, ok := alias.(string); ok {
				p.Aliases = append(p.Aliases, text)
			}
		}
	}
	p.Roles = d.roles(schema, nil, 0)
	return p
}

// roles adds the roles of a value and of what is in it, except of properties, which are described
// themselves.
func (d *describer) roles(schema map[string]any, roles []tool.Role, depth int) []tool.Role {
	for _, same := range d.parts(schema) {
		if text, ok := same[tool.KeywordRole].(string); ok && !slices.Contains(roles, tool.Role(text)) {
			roles = append(roles, tool.Role(text))
		}
		if depth == maxNested {
			continue
		}
		_ = subschemas(same, func(path []string, sub any, pos position) error { // never an error
			if in := object(sub); in != nil && (pos == part || pos == property && path[0] == "patternProperties") {
				roles = d.roles(in, roles, depth+1)
			}
			return nil
		})
	}
	return roles
}

// parts returns the schemas that describe the same value as a schema, itself first. It returns
// none when too many have been visited.
func (d *describer) parts(schema map[string]any) []map[string]any {
	parts := []map[string]any{schema}
	for i := 0; i < len(parts) && len(parts) < maxAlternatives; i++ {
		if ref, ok := parts[i]["$ref"].(string); ok {
			if to := object(at(d.doc, ref)); to != nil {
				parts = append(parts, to)
			}
		}
		_ = subschemas(parts[i], func(_ []string, sub any, pos position) error { // never an error
			if to := object(sub); to != nil && pos == inPlace {
				parts = append(parts, to)
			}
			return nil
		})
	}
	parts = parts[:min(len(parts), maxAlternatives)]
	if d.left -= len(parts); d.left < 0 {
		return nil
	}
	return parts
}

// typeOf returns a type in words.
func (d *describer) typeOf(schema map[string]any, depth int) string {
	var types []string
	add := func(text string) {
		if !slices.Contains(types, text) {
			types = append(types, text)
		}
	}
	for _, part := range d.parts(schema) {
		names := list(part["type"])
		if name, ok := part["type"].(string); ok {
			names = []any{name}
		}
		switch value, constant := part["const"]; {
		case constant:
			add(string(Canonical(value)))
			continue
		case part["enum"] != nil:
			add(valuesOf(list(part["enum"])))
			continue
		}
		for _, name := range names {
			text, _ := name.(string)
			add(d.typeNamed(text, part, depth))
		}
	}
	if len(types) == 0 {
		return "any value"
	}
	return strings.Join(types, " or ")
}

// typeNamed returns a type in words by its name.
func (d *describer) typeNamed(name string, schema map[string]any, depth int) string {
	switch items := object(schema["items"]); {
	case name == "array" && items != nil && depth < maxNested:
		return "list of " + d.typeOf(items, depth+1) + between(schema["minItems"], schema["maxItems"], " items")
	case name == "array":
		return "list" + between(schema["minItems"], schema["maxItems"], " items")
	case name == "string" && schema["maxLength"] == nil && fmt.Sprint(schema["minLength"]) == "1":
		return "string, not empty"
	case name == "string":
		return "string" + between(schema["minLength"], schema["maxLength"], " characters")
	case name == "integer" && schema[keywordUnit] == unitDuration:
		return "duration"
	case name == "integer" && schema[keywordUnit] == unitBytes:
		return "size"
	case name == "object" && object(schema["additionalProperties"]) != nil && depth < maxNested:
		return "map of " + d.typeOf(object(schema["additionalProperties"]), depth+1)
	case name == "integer", name == "number":
		return name + bounds(schema)
	}
	return name
}

// written returns a value as a person writes it in a unit.
func written(value, unit any) any {
	number, _ := value.(json.Number)
	n, err := number.Int64()
	switch {
	case err != nil:
	case unit == unitDuration:
		return short(time.Duration(n))
	case unit == unitBytes:
		return tool.ByteSize(n).String()
	}
	return value
}

// short returns a duration without the units that are zero: "720h", not "720h0m0s".
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if cut, ok := strings.CutSuffix(text, zero); ok {
			text = cut + zero[:1]
		}
	}
	return text
}

// bounds returns the bounds of a number in words. Those of [boundIntegers] say nothing.
func bounds(schema map[string]any) string {
	low, _ := schema["minimum"].(json.Number)
	high, _ := schema["maximum"].(json.Number)
	if low == leastInteger {
		low = ""
	}
	if high == greatestInteger {
		high = ""
	}
	return between(low, high, "")
}

// between returns bounds in words; "" or nil is none.
func between(low, high any, of string) string {
	has := func(bound any) bool {
		number, ok := bound.(json.Number)
		return ok && number != ""
	}
	switch {
	case has(low) && has(high):
		return fmt.Sprintf(", %s to %s%s", low, high, of)
	case has(low):
		return fmt.Sprintf(", at least %s%s", low, of)
	case has(high):
		return fmt.Sprintf(", at most %s%s", high, of)
	}
	return ""
}

// valuesOf lists values.
func valuesOf(values []any) string {
	if len(values) > maxNamed {
		return fmt.Sprintf("one of %d values", len(values))
	}
	var texts []string
	for _, value := range values {
		text, ok := value.(string)
		if !ok {
			text = string(Canonical(value))
		}
		texts = append(texts, text)
	}
	return "one of " + strings.Join(texts, ", ")
}

func list(value any) []any {
	l, _ := value.([]any)
	return l
}
