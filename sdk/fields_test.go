package sdk

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestMalformedTags builds its structs by reflection, since go vet refuses to
// see them in code.
func TestMalformedTags(t *testing.T) {
	for _, tt := range []struct{ tag, want string }{
		{`json:"a", jsonschema:"x"`, "cannot be read"},
		{`json:"a" jsonschema:x`, "cannot be read"},
		{`json:"a" jsonschema: "x"`, "cannot be read"},
		{`json:"a" jsonschema:"x`, "cannot be read"},
		{`json:"a" jsonschema:"x"enum:"a"`, "cannot be read"},
		{`json:"a" jsonschema:"x" json:"b"`, "cannot be read"},
		{`enum`, "cannot be read"},
		{` json:"a"  jsonschema:"it says \"x\"" yaml:"a" `, ""},
	} {
		field := reflect.StructField{Name: "A", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(tt.tag)}
		mistakes := infer(reflect.StructOf([]reflect.StructField{field}), arguments).mistakes
		found := slices.ContainsFunc(mistakes, func(m DefinitionError) bool { return strings.Contains(m.Reason, "cannot be read") })
		if len(mistakes) > 1 || found != (tt.want != "") {
			t.Errorf("mistakes of the tag %s = %v, want %q", tt.tag, mistakes, tt.want)
		}
	}
}

// FuzzTagKeys shows that reflect can read a whole tag if fields finds all its keys.
func FuzzTagKeys(f *testing.F) {
	for _, seed := range []string{`json:"a"`, `json:"a" enum:"b"`, `json:"a",enum:"b"`, `a:"\"" b:""`, "a:`b`", `:""`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		keys, ok := tagKeys(tag)
		for _, key := range keys {
			if _, found := reflect.StructTag(tag).Lookup(key); ok && !found {
				t.Errorf("tagKeys(%q) has %q, which reflect does not find", tag, key)
			}
		}
	})
}
