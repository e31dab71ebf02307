package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Names that models know from other programs lead to the tools and arguments here.
func TestAliases(t *testing.T) {
	specs := map[string]tool.Spec{}
	for _, spec := range newPlugin().Tools() {
		for _, name := range append([]string{spec.Name}, spec.Aliases...) {
			specs[name] = spec
		}
	}
	for _, tt := range []struct {
		alias, tool string
		arguments   map[string]string // alias -> name
	}{
		{"Read", "read_file", map[string]string{"file_path": "path"}},
		{"Write", "write_file", map[string]string{"file_path": "path"}},
		{"Edit", "edit_file", map[string]string{"file_path": "path", "old_string": "old", "new_string": "new"}},
		{"Grep", "search_content", map[string]string{
			"glob": "globs", "type": "types", "mode": "output_mode", "-A": "after", "-B": "before", "-C": "context", "-i": "ignore_case", "-n": "numbers", "head_limit": "max_results",
		}},
		{"Glob", "search_files", map[string]string{"dir": "path", "head_limit": "limit"}},
		{"find", "search_files", nil},
		{"LS", "list_directory", map[string]string{"dir": "path"}},
		{"read_files", "read_files", map[string]string{"file_paths": "paths"}},
		{"apply_patch", "apply_patch", map[string]string{"input": "patch"}},
	} {
		spec := specs[tt.alias]
		if spec.Name != tt.tool {
			t.Errorf("%s leads to %q, want %q", tt.alias, spec.Name, tt.tool)
			continue
		}
		var schema struct {
			Properties map[string]struct {
				Aliases []string `json:"x-aliases"`
			}
		}
		if err := json.Unmarshal(spec.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		for alias, name := range tt.arguments {
			if !slices.Contains(schema.Properties[name].Aliases, alias) {
				t.Errorf("%s: %s has the aliases %v, want %s", tt.tool, name, schema.Properties[name].Aliases, alias)
			}
		}
	}
}

// maxDescribed is the size of a tool's name, description and schema in bytes on average,
// with the keywords that only the host reads.
const maxDescribed = 780

// Each request of a client has all tools, so their descriptions and schemas are short.
func TestDescriptionsAreShort(t *testing.T) {
	sum, specs := 0, newPlugin().Tools()
	for _, spec := range specs {
		sum += len(spec.Name) + len(spec.Description) + len(spec.InputSchema)
	}
	if got := sum / len(specs); got > maxDescribed {
		t.Errorf("a tool takes %d bytes on average, want at most %d", got, maxDescribed)
	}
}
