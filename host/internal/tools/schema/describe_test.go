package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/tool"
)

func TestArguments(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"type":"object","required":["path"],"$defs":{"line":{"type":"integer","minimum":1,"description":"a line"}},"properties":{
		"path":{"type":"string","description":"file","x-role":"path","x-aliases":["file","filename"]},
		"all":{"type":"boolean","default":false,"description":"all of them"},
		"line":{"$ref":"#/$defs/line"},
		"limit":{"type":"integer","minimum":1,"maximum":100,"default":10,"description":"how many"},
		"name":{"type":"string","minLength":1,"maxLength":80,"description":"n"},
		"tags":{"type":"array","maxItems":5,"description":"t","items":{"type":"string","minLength":1}},
		"least":{"type":"number","maximum":0.5,"description":"at most"},
		"mode":{"type":"string","enum":["a","b"],"description":"how"},
		"command":{"anyOf":[{"type":"string","x-role":"command"},{"type":"array","items":{"type":"string","x-role":"argv"}}],"description":"what runs"},
		"edits":{"type":"array","description":"changes","items":{"type":"object","required":["old"],"properties":{
			"file":{"type":"string","description":"if another","x-role":"path"},
			"old":{"type":"string","description":"text"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Property{
		{Name: "path", Type: "string", Required: true, Roles: []tool.Role{tool.RolePath}, Aliases: []string{"file", "filename"}, Description: "file"},
		{Name: "all", Type: "boolean", Default: json.RawMessage("false"), Description: "all of them"},
		{Name: "command", Type: "string or list of string", Roles: []tool.Role{tool.RoleCommand, tool.RoleArgv}, Description: "what runs"},
		{Name: "edits", Type: "list of object", Description: "changes"},
		{Name: "edits[].old", Type: "string", Required: true, Description: "text"},
		{Name: "edits[].file", Type: "string", Roles: []tool.Role{tool.RolePath}, Description: "if another"},
		{Name: "least", Type: "number, at most 0.5", Description: "at most"},
		{Name: "limit", Type: "integer, 1 to 100", Default: json.RawMessage("10"), Description: "how many"},
		{Name: "line", Type: "integer, at least 1", Description: "a line"},
		{Name: "mode", Type: "one of a, b", Description: "how"},
		{Name: "name", Type: "string, 1 to 80 characters", Description: "n"},
		{Name: "tags", Type: "list of string, not empty, at most 5 items", Description: "t"},
	}
	if diff := cmp.Diff(want, s.Arguments()); diff != "" {
		t.Errorf("Arguments (-want +got):\n%s", diff)
	}
}

// TestDescribe describes settings, which may be any schema.
func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		name, schema string
		want         []Property
	}{
		{"nothing", ``, nil},
		{"no JSON", `{`, nil},
		{"no schema", `[1]`, nil},
		{"no properties", `{"type":"object"}`, nil},
		{"units", `{"properties":{"age":{"type":"integer","x-unit":"duration","default":2592000000000000},"size":{"type":"integer","x-unit":"bytes","default":1024},
			"wait":{"type":"integer","x-unit":"duration","default":90000000000},"none":{"type":"integer","x-unit":"duration","default":"x"}}}`, []Property{
			{Name: "age", Type: "duration", Default: json.RawMessage(`"720h"`)},
			{Name: "none", Type: "duration", Default: json.RawMessage(`"x"`)},
			{Name: "size", Type: "size", Default: json.RawMessage(`"1KiB"`)},
			{Name: "wait", Type: "duration", Default: json.RawMessage(`"1m30s"`)},
		}},
		{"names that the admin chooses", `{"properties":{"hosts":{"type":"object","additionalProperties":{"type":"object","properties":{"port":{"type":"integer"}}}}}}`, []Property{
			{Name: "hosts", Type: "map of object"}, {Name: "hosts.NAME.port", Type: "integer"},
		}},
		{"many values", `{"properties":{"n":{"enum":[1,2,3,4,5,6,7,8,9,10,11,12,13]},"c":{"const":{"a":1}}}}`, []Property{
			{Name: "c", Type: `{"a":1}`}, {Name: "n", Type: "one of 13 values"},
		}},
		{"any value", `{"properties":{"x":{}, "y":true}}`, []Property{{Name: "x", Type: "any value"}}},
		{"keywords of wrong types", `{"required":"x","properties":{"x":{"type":7,"anyOf":{},"x-aliases":"a","description":1,"items":[],"$ref":3,"x-role":[]}}}`, []Property{{Name: "x", Type: "any value"}}},
	} {
		if diff := cmp.Diff(tt.want, Describe(json.RawMessage(tt.schema))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestDescribeIsBounded describes schemas that contain themselves: a description of all that they
// allow has no end.
func TestDescribeIsBounded(t *testing.T) {
	many := strings.Repeat(`{"$ref":"#/items"},`, 30) + `{"type":"null"}`
	for _, text := range []string{
		`{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"},"c":{"type":"array","items":{"$ref":"#"}}}}`,
		`{"properties":{"a":{"$ref":"#/items"}},"items":{"type":"array","items":{"anyOf":[` + many + `]},"additionalProperties":{"anyOf":[` + many + `]}}}`,
		`{"$ref":"#","properties":{"a":{"$ref":"#/properties/a"}}}`,
	} {
		if n := len(Describe(json.RawMessage(text))); n == 0 || n > maxDescribed {
			t.Errorf("%d properties of %.60s, want some", n, text)
		}
	}
}
