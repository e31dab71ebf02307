package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// settingSchema is the part of JSON Schema 2020-12 that is checked here, where
// the place of a mistake is known. A plugin checks its settings itself too, so
// what other keywords demand is not lost.
type settingSchema struct {
	Type       schemaTypes               `json:"type"`
	Enum       []json.RawMessage         `json:"enum"`
	Minimum    *json.Number              `json:"minimum"`
	Maximum    *json.Number              `json:"maximum"`
	Properties map[string]*settingSchema `json:"properties"`
	Required   []string                  `json:"required"`
	Items      *settingSchema            `json:"items"`
	Default    json.RawMessage           `json:"default"`
	// Additional is the schema of properties that are not listed.
	Additional *settingSchema `json:"additionalProperties"`
	// Unit is "bytes" or "duration": an integer that is written with a unit.
	Unit string `json:"x-unit"`

	// Never is true for the schema false, which nothing satisfies.
	Never bool `json:"-"`
}

// UnmarshalJSON implements [json.Unmarshaler]: a schema may be true or false.
func (s *settingSchema) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("true")) || bytes.Equal(b, []byte("false")) {
		*s = settingSchema{Never: b[0] == 'f'}
		return nil
	}
	type plain settingSchema // without this method
	return json.Unmarshal(b, (*plain)(s))
}

// schemaTypes is the keyword type: one name, or a list of names. Empty allows
// any type.
type schemaTypes []string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *schemaTypes) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*t = make(schemaTypes, 1)
		return json.Unmarshal(b, &(*t)[0])
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// allows reports whether one of the types may be.
func (t schemaTypes) allows(name string) bool {
	return len(t) == 0 || slices.Contains(t, name)
}

// parseSettingSchema reads the schema that a plugin publishes; nil if it has
// none.
func parseSettingSchema(schema []byte) (*settingSchema, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return nil, nil //nolint:nilnil // no schema is an answer, not a failure
	}
	var s *settingSchema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("the plugin's settings schema is not a JSON Schema: %w", err)
	}
	if s == nil || !s.Type.allows("object") {
		return nil, fmt.Errorf("the plugin's settings schema must describe an object")
	}
	return s, nil
}
