package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

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
		return nil, nil //nolint:nilnil // no schema is an answer, not a failure
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
