package schema_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestForeign checks what only the schema of another program may have, and that it is compiled by the
// version that it names.
func TestForeign(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, schema  string
		accepts, not  string // arguments
		own, mistakes string // why a plugin's own tool is refused, and a foreign one
	}{
		{"no type", `{"type":"object","properties":{"a":{"description":"A."}}}`, `{"a":[1]}`, `{"b":1}`, "has no type", ""},
		{"no description", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":{}}`, "has no description", ""},
		{"anything", `{"type":"object","properties":{"a":true}}`, `{"a":null}`, `{"b":1}`, "has no type", ""},
		{"nested", `{"type":"object","properties":{"a":{"type":"object","description":"A.","properties":{"b":{}}}}}`, `{"a":{"b":1}}`, `{"a":{"c":1}}`, "has no type", ""},
		{
			"further arguments", `{"type":"object","properties":{"a":{"type":"string","description":"A."}},"additionalProperties":true}`,
			`{"b":1}`, `{"a":{}}`, "", "",
		},
		{
			"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"n":{"type":"number"}},
				"properties":{"a":{"type":"array","items":[{"$ref":"#/definitions/n"}],"description":"A."}}}`,
			`{"a":[1,"x"]}`, `{"a":["x"]}`, "the version must be", "",
		},
		{
			"draft 2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object",
				"properties":{"a":{"type":"array","items":[{"type":"number"}],"description":"A."}}}`,
			`{"a":[1,"x"]}`, `{"a":["x"]}`, "the version must be", "",
		},
		{"an unknown draft", `{"$schema":"https://example.com/schema","type":"object"}`, "", "", "the version must be", "the version must be"},
		{"another document", `{"type":"object","properties":{"a":{"$ref":"https://example.com/schema"}}}`, "", "", "must stay inside", "must stay inside"},
		{"a wrong keyword", `{"type":"object","properties":{"a":{"type":"text"}}}`, "", "", "", "at /properties/a/type: not valid JSON Schema"},
		{
			"a wrong keyword of draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"minLength":"x"}}}`,
			"", "", "", "at /properties/a/minLength: not valid JSON Schema",
		},
		{"no object", `{"type":"array"}`, "", "", "the type must be", "the type must be"},
		{"an invisible character", `{"type":"object","properties":{"a":{"description":"A.\u200b"}}}`, "", "", "", "cannot be seen"},
	} {
		if _, err := schema.Compile(json.RawMessage(tt.schema)); tt.own != "" && (err == nil || !strings.Contains(err.Error(), tt.own)) {
			t.Errorf("%s: a plugin's own tool: error %v, want %q", tt.name, err, tt.own)
		}
		s, err := schema.CompileForeign(json.RawMessage(tt.schema))
		if tt.mistakes != "" {
			if err == nil || !strings.Contains(err.Error(), tt.mistakes) {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.mistakes)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for text, want := range map[string]bool{tt.accepts: true, tt.not: false} {
			value, wrong := schema.Read([]byte(text))
			if wrong != nil {
				t.Fatal(wrong)
			}
			if _, wrong := s.Check(value); (wrong == nil) != want {
				t.Errorf("%s: Check(%s) = %v, want accepted %v", tt.name, text, wrong, want)
			}
		}
	}
}

// TestForeignRoles checks that a role is found in an earlier draft, too.
func TestForeignRoles(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-06/schema#"} {
		s, err := schema.CompileForeign(json.RawMessage(`{"$schema":"` + version + `","type":"object","properties":{"file":{"type":"string","x-role":"path"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.ValuesOf(tool.RolePath, map[string]any{"file": "a.txt"}); !slices.Equal(got, []string{"a.txt"}) {
			t.Errorf("%s: paths %v", version, got)
		}
	}
}
