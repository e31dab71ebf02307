package sdktest_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/sdktest"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestUntested(t *testing.T) {
	schema := `{"properties": {
		"path": {}, "limit": {"default": 10}, "all": {"default": false},
		"edits": {"items": {"properties": {"old": {}, "new": {"default": ""}}}}, "at": {"properties": {"line": {"default": 1}}}
	}}`
	tools := []tool.Spec{{Name: "edit", InputSchema: json.RawMessage(schema)}}
	calls := []sdktest.Call{
		{Tool: "edit", Args: map[string]any{"path": "a", "limit": 10, "edits": []any{map[string]any{"old": "x", "new": ""}}}},
		{Tool: "edit", Args: map[string]any{"at": map[string]any{"line": 2}}},
		{Tool: "other", Args: map[string]any{"all": true}},
		{Tool: "edit"},
	}
	got, err := sdktest.Untested(tools, calls)
	if diff := cmp.Diff([]string{"edit.all", "edit.edits[].new", "edit.limit"}, got); err != nil || diff != "" {
		t.Errorf("Untested = %v (-want +got):\n%s", err, diff)
	}
	if _, err := sdktest.Untested([]tool.Spec{{Name: "bad", InputSchema: json.RawMessage(`{`)}}, nil); err == nil {
		t.Error("a schema that is no JSON is taken")
	}
}
