package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/toolhost/toolhost/host/internal/config/diag"
	"github.com/toolhost/toolhost/sdk/tool"
)

// settingCheck converts settings to JSON values by a schema and collects the mistakes.
// The values are valid only if there are none.
type settingCheck struct {
	mistakes hcl.Diagnostics
}

func (c *settingCheck) mistake(at hcl.Range, summary, format string, args ...any) {
	c.mistakes = append(c.mistakes, diag.Mistake(at, summary, format, args...))
}

// object returns the value of an object and of everything in it.
func (c *settingCheck) object(schema *settingSchema, s *setting) map[string]any {
	values := make(map[string]any)
	known := slices.Sorted(maps.Keys(schema.Properties))
	for name, f := range s.fields {
		property := schema.property(name)
		if property == nil {
			c.mistake(f.name, "Unknown setting", "There is no setting %q here.%s%s", name, diag.DidYouMean(name, known), listKnown(known))
			continue
		}
		if f.kind == scalarSetting && f.value.IsNull() && !property.Type.allows("null") {
			continue // null means not set, as everywhere in HCL
		}
		values[name] = c.value(property, name, f.setting)
	}
	for _, name := range known {
		if _, set := values[name]; set {
			continue
		}
		if property := schema.Properties[name]; property.Default != nil {
			values[name] = property.Default
		}
	}
	for _, name := range schema.Required {
		if _, set := values[name]; !set {
			c.mistake(s.at, "Missing setting", "The plugin needs %s for the setting %q.", schema.Properties[name].expected(), name)
		}
	}
	return values
}

// listKnown returns a sentence with the known names, or "" if there are none or too many.
func listKnown(names []string) string {
	const most = 12 // that a person reads
	if len(names) == 0 || len(names) > most {
		return ""
	}
	return " Expected one of " + strings.Join(diag.Quoted(names), ", ") + "."
}

// value returns the value of any setting. Messages call it name.
func (c *settingCheck) value(schema *settingSchema, name string, s *setting) any {
	switch s.kind {
	case objectSetting:
		if schema.Type.allows("object") && schema.Unit == "" {
			return c.object(schema, s)
		}
		c.wrongType(schema, name, s)
	case listSetting:
		if schema.Type.allows("array") && schema.Unit == "" {
			return c.list(schema, name, s)
		}
		c.wrongType(schema, name, s)
	case blocksSetting:
		return c.blocks(schema, name, s)
	case scalarSetting:
		return c.scalar(schema, name, s)
	case brokenSetting:
	}
	return nil
}

func (c *settingCheck) list(schema *settingSchema, name string, s *setting) any {
	items := schema.Items
	if items == nil {
		items = &settingSchema{}
	}
	values := make([]any, len(s.elements))
	for i, e := range s.elements {
		values[i] = c.value(items, fmt.Sprintf("%s[%d]", name, i), e)
	}
	return values
}

// blocks returns the value of all blocks of one type.
func (c *settingCheck) blocks(schema *settingSchema, name string, s *setting) any {
	switch {
	case !schema.Type.allows("object") && schema.Type.allows("array"):
		return c.list(schema, name, s)
	case !schema.Type.allows("object") || schema.Unit != "":
		c.mistake(s.at, "Not a block", "%q is not a block. Write %s = with %s.", name, name, schema.expected())
		return nil
	case len(s.elements) > 1:
		c.mistake(s.elements[1].at, "Duplicate block", "Another %q is at %s, and only one is allowed. Put everything into one.", name, diag.Place(s.at))
		return nil
	}
	return c.object(schema, s.elements[0])
}

// scalar returns the value of a string, number, bool or null. A string that spells a
// number or a bool counts as one, so that env() can give it.
func (c *settingCheck) scalar(schema *settingSchema, name string, s *setting) any {
	switch {
	case s.value.IsNull():
		if !schema.Type.allows("null") {
			c.wrongType(schema, name, s)
		}
		return nil
	case schema.Unit != "":
		return c.withUnit(schema, name, s)
	case s.value.Type() == cty.String && schema.Type.allows("string"):
		return c.enum(schema, name, s, s.value.AsString())
	case schema.Type.allows("integer") || schema.Type.allows("number"):
		if v, err := convert.Convert(s.value, cty.Number); err == nil {
			return c.number(schema, name, s, v.AsBigFloat())
		}
	}
	if schema.Type.allows("boolean") {
		if v, err := convert.Convert(s.value, cty.Bool); err == nil {
			return c.enum(schema, name, s, v.True())
		}
	}
	c.wrongType(schema, name, s)
	return nil
}

// number returns the value of a number, which may have to be whole.
func (c *settingCheck) number(schema *settingSchema, name string, s *setting, n *big.Float) any {
	var value any
	whole, accuracy := n.Int64()
	switch {
	case accuracy == big.Exact && n.IsInt():
		value = whole
	case !schema.Type.allows("number"):
		c.mistake(s.at, "Wrong number", "Expected a whole number of at most 64 bits for %q.", name)
		return nil
	default:
		f, _ := n.Float64()
		if math.IsInf(f, 0) {
			c.mistake(s.at, "Wrong number", "The number for %q is too large.", name)
			return nil
		}
		value = f
	}
	if !c.inRange(schema, name, s, n) {
		return nil
	}
	return c.enum(schema, name, s, value)
}

// withUnit returns the value of an integer that is written as a size or a duration.
func (c *settingCheck) withUnit(schema *settingSchema, name string, s *setting) any {
	if s.value.Type() != cty.String {
		c.wrongType(schema, name, s)
		return nil
	}
	text := s.value.AsString()
	n, err := parseUnit(schema.Unit, text)
	if err != nil {
		c.mistake(s.at, "Wrong value", "Expected %s for %q, not %s.", schema.expected(), name, quote(s.expr, text))
		return nil
	}
	if !c.inRange(schema, name, s, new(big.Float).SetInt64(n)) {
		return nil
	}
	return n
}

func parseUnit(unit, text string) (int64, error) {
	if unit == unitBytes {
		size, err := tool.ParseByteSize(text)
		return int64(size), err
	}
	t, err := parseDuration(text)
	return int64(t), err
}

// inRange checks minimum and maximum.
func (c *settingCheck) inRange(schema *settingSchema, name string, s *setting, n *big.Float) bool {
	if low := schema.Minimum.float(); low != nil && n.Cmp(low) < 0 {
		c.mistake(s.at, "Out of range", "Expected at least %s for %q.", schema.format(low), name)
		return false
	}
	if high := schema.Maximum.float(); high != nil && n.Cmp(high) > 0 {
		c.mistake(s.at, "Out of range", "Expected at most %s for %q.", schema.format(high), name)
		return false
	}
	return true
}

// enum checks that a value is listed in the schema, if the schema has a list.
func (c *settingCheck) enum(schema *settingSchema, name string, s *setting, value any) any {
	if len(schema.Enum) == 0 {
		return value
	}
	if slices.ContainsFunc(schema.Enum, func(allowed any) bool { return same(allowed, value) }) {
		return value
	}
	text, ok := value.(string)
	if !ok {
		c.mistake(s.at, "Unknown value", "The plugin does not know this value for %q.%s", name, listEnum(schema.Enum))
		return nil
	}
	var words []string
	for _, allowed := range schema.Enum {
		if word, ok := allowed.(string); ok {
			words = append(words, word)
		}
	}
	c.mistake(s.at, "Unknown value", "The plugin does not know %s for %q.%s%s", quote(s.expr, text), name, diag.DidYouMean(text, words), listEnum(schema.Enum))
	return nil
}

// listEnum returns a sentence with the allowed values, or "" if it would be too long.
func listEnum(values []any) string {
	const most = 400 // bytes that a person reads
	var texts []string
	for _, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		texts = append(texts, string(text))
	}
	list := strings.Join(texts, ", ")
	if len(list) > most {
		return ""
	}
	return " Expected one of " + list + "."
}

// same compares a value that package json decoded from a schema with another value.
func same(allowed, value any) bool {
	if whole, ok := value.(int64); ok {
		value = float64(whole)
	}
	return allowed == value
}

func (c *settingCheck) wrongType(schema *settingSchema, name string, s *setting) {
	got := "null"
	if !s.value.IsNull() {
		got = typeName(s.value)
	}
	c.mistake(s.at, "Wrong type", "Expected %s for %q, not %s.", schema.expected(), name, got)
}

// settingSchema is the part of JSON Schema 2020-12 that the host checks, since it knows
// the places of mistakes. The plugin checks its settings too, with all keywords.
type settingSchema struct {
	Type       schemaTypes               `json:"type"`
	Enum       []any                     `json:"enum"`
	Minimum    schemaNumber              `json:"minimum"`
	Maximum    schemaNumber              `json:"maximum"`
	Properties map[string]*settingSchema `json:"properties"`
	Required   []string                  `json:"required"`
	Items      *settingSchema            `json:"items"`
	Default    json.RawMessage           `json:"default"`
	// Additional is the schema of properties that are not listed.
	Additional *settingSchema `json:"additionalProperties"`
	// Unit is [unitBytes] or [unitDuration] for an integer that is written with a unit,
	// otherwise "".
	Unit string `json:"x-unit"`

	// Any of these may allow properties that are not listed.
	Pattern json.RawMessage `json:"patternProperties"`
	Ref     json.RawMessage `json:"$ref"`
	AllOf   json.RawMessage `json:"allOf"`
	AnyOf   json.RawMessage `json:"anyOf"`
	OneOf   json.RawMessage `json:"oneOf"`

	// never marks the schema false, which no value satisfies.
	never bool
}

// The units of integers: bytes, and nanoseconds.
const (
	unitBytes    = "bytes"
	unitDuration = "duration"
)

// parseSettingSchema reads the schema that a plugin publishes. It returns nil if the
// plugin has none.
func parseSettingSchema(schema []byte) (*settingSchema, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return nil, nil
	}
	if err := checkSchemaSize(schema); err != nil {
		return nil, err
	}
	var s settingSchema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("the plugin's settings schema is not a JSON Schema: %w", err)
	}
	if s.never || !s.Type.allows("object") {
		return nil, errors.New("the plugin's settings schema does not describe an object")
	}
	return &s, nil
}

const (
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 64
)

// checkSchemaSize refuses a schema that would take long to decode: each level is read
// once more than the level above it. A plugin may send any schema.
func checkSchemaSize(schema []byte) error {
	if len(schema) > maxSchemaBytes {
		return fmt.Errorf("the plugin's settings schema has %d bytes, more than %d", len(schema), maxSchemaBytes)
	}
	depth := 0
	decoder := json.NewDecoder(bytes.NewReader(schema))
	// json.Unmarshal reports an error that ends this loop.
	for token, err := decoder.Token(); err == nil; token, err = decoder.Token() {
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth > maxSchemaDepth {
			return fmt.Errorf("the plugin's settings schema is nested more than %d deep", maxSchemaDepth)
		}
	}
	return nil
}

// UnmarshalJSON implements [json.Unmarshaler]: a schema may be true or false.
func (s *settingSchema) UnmarshalJSON(b []byte) error {
	if string(b) == "true" || string(b) == "false" {
		*s = settingSchema{never: string(b) == "false"}
		return nil
	}
	type plain settingSchema // without this method
	if err := json.Unmarshal(b, (*plain)(s)); err != nil {
		return err
	}
	if s.Unit != "" && s.Unit != unitBytes && s.Unit != unitDuration {
		return fmt.Errorf("unknown x-unit %q, expected %q or %q", s.Unit, unitBytes, unitDuration)
	}
	for name, property := range s.Properties {
		if property == nil {
			return fmt.Errorf("property %q is null", name)
		}
	}
	return nil
}

// property returns the schema of a property, or nil if there is no such property. A
// schema that does not mention further properties allows none: a misspelled setting
// must not be ignored silently.
func (s *settingSchema) property(name string) *settingSchema {
	if p := s.Properties[name]; p != nil {
		return p
	}
	open := s.Properties == nil || s.Pattern != nil || s.Ref != nil || s.AllOf != nil || s.AnyOf != nil || s.OneOf != nil
	switch {
	case s.Additional != nil && !s.Additional.never:
		return s.Additional
	case s.Additional == nil && open:
		return &settingSchema{} // any value: the plugin checks it
	}
	return nil
}

// expected describes the values of the schema to a person.
func (s *settingSchema) expected() string {
	if s == nil {
		return "a value"
	}
	switch s.Unit {
	case unitBytes:
		return sizeExample
	case unitDuration:
		return durationExample
	}
	words := map[string]string{
		"string": "a string", "integer": "a whole number", "number": "a number",
		"boolean": "true or false", "array": "a list", "object": "an object",
	}
	var names []string
	for _, t := range s.Type {
		if w := words[t]; w != "" {
			names = append(names, w)
		}
	}
	if len(names) == 0 {
		return "a value"
	}
	return strings.Join(names, " or ")
}

// format returns a bound in the unit of the setting.
func (s *settingSchema) format(bound *big.Float) string {
	n, _ := bound.Int64()
	switch s.Unit {
	case unitBytes:
		return tool.ByteSize(n).String()
	case unitDuration:
		return time.Duration(n).String()
	}
	return bound.Text('g', 17)
}

// schemaTypes is the keyword type: one name, or a list of names. None allows any type.
type schemaTypes []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *schemaTypes) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*t = make(schemaTypes, 1)
		return json.Unmarshal(b, &(*t)[0])
	}
	return json.Unmarshal(b, (*[]string)(t))
}

func (t schemaTypes) allows(name string) bool {
	return len(t) == 0 || slices.Contains(t, name)
}

// schemaNumber is a bound as written in the schema; "" means none.
type schemaNumber json.Number

// UnmarshalJSON implements [json.Unmarshaler].
func (n *schemaNumber) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, (*json.Number)(n))
}

// float returns the bound, or nil.
func (n schemaNumber) float() *big.Float {
	f, ok := new(big.Float).SetPrec(512).SetString(string(n))
	if !ok {
		return nil
	}
	return f
}
