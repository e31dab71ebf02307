package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
)

// TestListed compares what a list has of a schema with what a call is checked by.
func TestListed(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{
			"closed objects", `{"type":"object","properties":{"a":{"type":"object","description":"d","properties":{"b":{"type":"string","description":"d"}}}}}`,
			`{"properties":{"a":{"description":"d","properties":{"b":{"description":"d","type":"string"}},"type":"object"}},"type":"object"}`,
		},
		{
			"a map", `{"type":"object","properties":{"a":{"type":"object","description":"d","additionalProperties":{"type":"integer","minimum":1}}}}`,
			`{"properties":{"a":{"additionalProperties":{"type":"integer"},"description":"d","type":"object"}},"type":"object"}`,
		},
		{
			"defaults", `{"type":"object","properties":{"a":{"type":"boolean","description":"d","default":false},"b":{"type":"boolean","description":"d","default":true},"c":{"type":"string","description":"d","default":"x"}}}`,
			`{"properties":{"a":{"description":"d","type":"boolean"},"b":{"default":true,"description":"d","type":"boolean"},"c":{"default":"x","description":"d","type":"string"}},"type":"object"}`,
		},
		{
			"bounds that only unusual values break", `{"type":"object","properties":{"a":{"type":"integer","description":"d","minimum":0,"maximum":1000},"b":{"type":"string","description":"d","minLength":1,"maxLength":200},"c":{"type":"array","description":"d","minItems":1,"maxItems":100,"items":{"type":"number","minimum":1}}}}`,
			`{"properties":{"a":{"description":"d","type":"integer"},"b":{"description":"d","type":"string"},"c":{"description":"d","items":{"type":"number"},"type":"array"}},"type":"object"}`,
		},
		{
			"bounds that matter", `{"type":"object","properties":{"a":{"type":"integer","description":"d","minimum":-5,"maximum":5},"b":{"type":"number","description":"d","minimum":2,"exclusiveMaximum":1000},"c":{"type":"array","description":"d","items":{"type":"string"},"maxItems":3}}}`,
			`{"properties":{"a":{"description":"d","maximum":5,"minimum":-5,"type":"integer"},"b":{"description":"d","exclusiveMaximum":1000,"minimum":2,"type":"number"},"c":{"description":"d","items":{"type":"string"},"maxItems":3,"type":"array"}},"type":"object"}`,
		},
		{
			"alternatives and conditions", `{"type":"object","properties":{"a":{"type":"integer","description":"d","anyOf":[{"minimum":1},{"maximum":100}],"not":{"minimum":1}}}}`,
			`{"properties":{"a":{"anyOf":[{"minimum":1},{"maximum":100}],"description":"d","not":{"minimum":1},"type":"integer"}},"type":"object"}`,
		},
		{
			"the host's keywords", `{"type":"object","properties":{"a":{"type":"string","description":"d","x-role":"path"}}}`,
			`{"properties":{"a":{"description":"d","type":"string"}},"type":"object"}`,
		},
	} {
		s, err := schema.Compile(json.RawMessage(tt.schema))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := string(s.Listed()); got != tt.want {
			t.Errorf("%s: Listed() =\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
	s, err := schema.Compile(json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","description":"d","maximum":1000}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{`{"a":1001}`, `{"b":1}`} {
		value, _ := schema.Read([]byte(wrong))
		if _, err := s.Check(value); err == nil {
			t.Errorf("Check(%s) succeeds", wrong)
		}
	}
	if got, want := string(s.Public()), `{"additionalProperties":false,"properties":{"a":{"description":"d","maximum":1000,"type":"integer"}},"type":"object"}`; got != want {
		t.Errorf("Public() = %s, want %s", got, want)
	}
}
