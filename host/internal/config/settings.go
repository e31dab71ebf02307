package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/toolhost/toolhost/sdk/tool"
)

// settings are the settings of one plugin, waiting for its schema.
type settings struct {
	root    *setting
	files   map[string]*hcl.File
	secrets *secrets
}

// evaluate checks the settings against the schema that the plugin publishes
// and returns them as a JSON object, with the defaults that the schema gives.
// Its error is an [*Error] if the settings have mistakes. It may be called at
// the same time from several goroutines.
func (s *settings) evaluate(schema []byte) ([]byte, error) {
	value, mistakes, err := s.check(schema)
	if err != nil {
		return nil, err
	}
	if err := newError(mistakes, s.files, s.secrets); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// check returns the value of the settings, which counts only if there are no
// mistakes. The error says that the schema is wrong.
func (s *settings) check(schema []byte) (map[string]any, hcl.Diagnostics, error) {
	parsed, err := parseSettingSchema(schema)
	if err != nil {
		return nil, nil, err
	}
	c := &settingCheck{}
	if parsed == nil && len(s.root.fields) > 0 {
		c.mistake(s.root.at, "Unexpected settings", "This plugin has no settings. Remove the config block.")
	}
	if parsed == nil {
		return map[string]any{}, c.mistakes, nil
	}
	return c.object(parsed, s.root), c.mistakes, nil
}

// settingCheck collects the mistakes of one evaluation.
type settingCheck struct {
	mistakes hcl.Diagnostics
}

func (c *settingCheck) mistake(at hcl.Range, summary, format string, args ...any) {
	c.mistakes = append(c.mistakes, mistakeAt(at, summary, format, args...))
}

// check returns the JSON value of a setting. What it returns counts only if no
// mistake was recorded.
func (c *settingCheck) check(schema *settingSchema, name string, s *setting) any {
	switch s.kind {
	case blocksSetting:
		return c.blocks(schema, name, s)
	case objectSetting:
		if schema.Type.allows("object") {
			return c.object(schema, s)
		}
		c.wrongType(schema, name, s, "an object")
	case listSetting:
		if schema.Type.allows("array") {
			return c.list(schema, name, s)
		}
		c.wrongType(schema, name, s, "a list")
	case scalarSetting:
		return c.scalar(schema, name, s)
	case brokenSetting:
	}
	return nil
}

// blocks is the value of the blocks of one type.
func (c *settingCheck) blocks(schema *settingSchema, name string, s *setting) any {
	switch {
	case !schema.Type.allows("object") && schema.Type.allows("array"):
		return c.list(schema, name, s)
	case !schema.Type.allows("object"):
		c.mistake(s.at, "Not a block", "%q is not a block but %s: write %s = ...", name, expectedSetting(schema), name)
		return nil
	case len(s.elements) > 1:
		c.mistake(s.elements[1].at, "Duplicate block", "There may be one %q only, and there is one at %s already.", name, place(s.at))
		return nil
	}
	return c.object(schema, s.elements[0])
}

func (c *settingCheck) list(schema *settingSchema, name string, s *setting) any {
	items := schema.Items
	if items == nil {
		items = &settingSchema{}
	}
	values := make([]any, len(s.elements))
	for i, e := range s.elements {
		values[i] = c.check(items, fmt.Sprintf("%s[%d]", name, i), e)
	}
	return values
}

func (c *settingCheck) object(schema *settingSchema, s *setting) map[string]any {
	values := make(map[string]any)
	known := slices.Sorted(maps.Keys(schema.Properties))
	for name, f := range s.fields {
		property := schema.Properties[name]
		if property == nil {
			property = schema.Additional
		}
		switch {
		case property == nil && schema.Properties == nil:
			property = &settingSchema{} // an object of anything
		case property == nil || (property.Never && schema.Properties[name] == nil):
			c.mistake(f.name, "Unknown setting", "The plugin has no setting %q.%s%s", name, didYouMean(name, known), listKnown(known))
			continue
		}
		if f.kind == scalarSetting && f.value.IsNull() && !property.Type.allows("null") {
			continue // null means that it is not set, as everywhere in HCL
		}
		values[name] = c.check(property, name, f.setting)
	}
	for _, name := range known {
		if _, set := values[name]; set || c.reported(s, name) {
			continue
		}
		property := schema.Properties[name]
		switch {
		case property.Default != nil:
			values[name] = property.Default
		case slices.Contains(schema.Required, name):
			c.mistake(s.at, "Missing setting", "The plugin needs the setting %q: %s.", name, expectedSetting(property))
		}
	}
	return values
}

// reported says that a field is there although it has no value: null.
func (*settingCheck) reported(s *setting, name string) bool {
	f := s.fields[name]
	return f != nil && (f.kind != scalarSetting || !f.value.IsNull())
}

func listKnown(names []string) string {
	if len(names) == 0 || len(names) > 20 {
		return ""
	}
	return " It has " + strings.Join(names, ", ") + "."
}

// scalar is the value of a string, a number, a bool or null.
func (c *settingCheck) scalar(schema *settingSchema, name string, s *setting) any {
	if s.value.IsNull() {
		if !schema.Type.allows("null") {
			c.wrongType(schema, name, s, "null")
		}
		return nil
	}
	if schema.Unit != "" {
		return c.withUnit(schema, name, s)
	}
	switch s.value.Type() {
	case cty.Bool:
		if !schema.Type.allows("boolean") {
			c.wrongType(schema, name, s, "true or false")
			return nil
		}
		return c.enum(schema, name, s, s.value.True())
	case cty.Number:
		return c.number(schema, name, s, s.value.AsBigFloat())
	default:
		text := s.value.AsString()
		if schema.Type.allows("string") {
			return c.enum(schema, name, s, text)
		}
		// A string may spell a number or a bool, so that env can give one.
		if schema.Type.allows("boolean") && (text == "true" || text == "false") {
			return text == "true"
		}
		if n, ok := new(big.Float).SetString(text); ok && (schema.Type.allows("integer") || schema.Type.allows("number")) && !isLiteral(s.expr) {
			return c.number(schema, name, s, n)
		}
		c.wrongType(schema, name, s, "a string")
		return nil
	}
}

// number is the value of a number that may have to be whole.
func (c *settingCheck) number(schema *settingSchema, name string, s *setting, n *big.Float) any {
	if !schema.Type.allows("number") {
		if !schema.Type.allows("integer") {
			c.wrongType(schema, name, s, "a number")
			return nil
		}
		if i, accuracy := n.Int64(); accuracy != big.Exact {
			c.mistake(s.at, "Wrong number", "Expected a whole number for %q that fits into 64 bits.", name)
			return nil
		} else if c.inRange(schema, name, s, n, strconv.FormatInt(i, 10)) {
			return c.enum(schema, name, s, i)
		}
		return nil
	}
	f, _ := n.Float64()
	text, err := json.Marshal(f) // refuses what is too large for JSON's readers
	if err != nil {
		c.mistake(s.at, "Wrong number", "The number for %q is too large.", name)
		return nil
	}
	if !c.inRange(schema, name, s, n, string(text)) {
		return nil
	}
	return c.enum(schema, name, s, json.Number(n.Text('g', 17)))
}

// withUnit is the value of an integer that is written as a size or duration.
func (c *settingCheck) withUnit(schema *settingSchema, name string, s *setting) any {
	if s.value.Type() != cty.String {
		c.wrongType(schema, name, s, typeName(s.value))
		return nil
	}
	var n int64
	text := s.value.AsString()
	switch schema.Unit {
	case unitBytes:
		size, err := tool.ParseByteSize(text)
		if err != nil {
			c.mistake(s.at, "Not a size", "Expected %s for %q, not %s.", expectedSetting(schema), name, quote(s.expr, text))
			return nil
		}
		n = int64(size)
	default:
		t, err := time.ParseDuration(text)
		if err != nil {
			c.mistake(s.at, "Not a duration", "Expected %s for %q, not %s.", expectedSetting(schema), name, quote(s.expr, text))
			return nil
		}
		n = int64(t)
	}
	if !c.inRange(schema, name, s, new(big.Float).SetInt64(n), text) {
		return nil
	}
	return n
}

// inRange checks minimum and maximum.
func (c *settingCheck) inRange(schema *settingSchema, name string, s *setting, n *big.Float, _ string) bool {
	for _, bound := range []struct {
		limit *json.Number
		wrong int // what comparing with the limit must not give
		words string
	}{
		{schema.Minimum, -1, "at least"},
		{schema.Maximum, 1, "at most"},
	} {
		if bound.limit == nil {
			continue
		}
		limit, ok := new(big.Float).SetPrec(512).SetString(bound.limit.String())
		if ok && n.Cmp(limit) == bound.wrong {
			c.mistake(s.at, "Out of range", "Expected %s %s for %q.", bound.words, formatBound(schema.Unit, limit), name)
			return false
		}
	}
	return true
}

const (
	unitBytes    = "bytes"
	unitDuration = "duration"
)

// formatBound writes a bound in the unit in which the setting is written.
func formatBound(unit string, limit *big.Float) string {
	n, _ := limit.Int64()
	switch unit {
	case unitBytes:
		return tool.ByteSize(n).String()
	case unitDuration:
		return time.Duration(n).String()
	}
	return limit.Text('g', 17)
}

// enum checks that a value is one of those that the schema lists.
func (c *settingCheck) enum(schema *settingSchema, name string, s *setting, value any) any {
	if len(schema.Enum) == 0 {
		return value
	}
	got, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	var words []string
	for _, raw := range schema.Enum {
		if string(raw) == string(got) {
			return value
		}
		words = append(words, strings.Trim(string(raw), `"`))
	}
	given, suggestion := "this", ""
	if text, ok := value.(string); ok {
		given, suggestion = quote(s.expr, text), didYouMean(text, words)
	}
	c.mistake(s.at, "Unknown value", "Expected one of %s for %q, not %s.%s", listWords(words), name, given, suggestion)
	return nil
}

func (c *settingCheck) wrongType(schema *settingSchema, name string, s *setting, got string) {
	c.mistake(s.at, "Wrong type", "Expected %s for %q, not %s.", expectedSetting(schema), name, got)
}

// expectedSetting describes for a person what a schema wants.
func expectedSetting(schema *settingSchema) string {
	switch schema.Unit {
	case unitBytes:
		return sizeExample
	case unitDuration:
		return durationExample
	}
	var names []string
	for _, t := range schema.Type {
		switch t {
		case "string":
			names = append(names, "a string")
		case "integer":
			names = append(names, "a whole number")
		case "number":
			names = append(names, "a number")
		case "boolean":
			names = append(names, "true or false")
		case "array":
			names = append(names, "a list")
		case "object":
			names = append(names, "an object")
		}
	}
	if len(names) == 0 {
		return "a value"
	}
	return strings.Join(names, " or ")
}
