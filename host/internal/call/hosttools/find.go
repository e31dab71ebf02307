package hosttools

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxQuery bounds the characters of a query.
	maxQuery = 200
	// defaultFound and maxFound bound the tools that one search returns.
	defaultFound = 5
	maxFound     = 20
)

const findSchema = `{
	"type": "object",
	"properties": {
		"query": {"type": "string", "minLength": 1, "maxLength": %d, "description": "what the tool does, in a few words"},
		"limit": {"type": "integer", "minimum": 1, "maximum": %d, "description": "most tools to return (%d)"}
	},
	"required": ["query"]
}`

const callSchema = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "minLength": 1, "description": "name of the tool", "x-aliases": ["tool", "tool_name"]},
		"arguments": {"type": "object", "description": "arguments of the tool, by its schema", "x-aliases": ["args", "input", "parameters"]}
	},
	"required": ["name"]
}`

// findTools returns the caller's tools that match a query, each with what a model needs to call it.
func (t *Tools) findTools(call tool.Call) (tool.Result, error) {
	var in struct {
		Query string  `json:"query"`
		Limit float64 `json:"limit"`
	}
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return tool.Result{}, fmt.Errorf("read the arguments of %s: %w", catalog.FindTool, err)
	}
	caller, ok := t.opts.Pipeline.Operations().CallerOf(call.ID)
	if !ok {
		return tool.Result{}, fmt.Errorf("the call %s is not in progress", call.ID)
	}
	limit := defaultFound
	if in.Limit > 0 {
		limit = int(in.Limit)
	}
	found := t.opts.Catalog.Search(in.Query, limit, caller.MayUse)
	if len(found) == 0 {
		return tool.TextResult("No tool fits. Describe what it does in other words, or name what it works on."), nil
	}
	var text strings.Builder
	for _, e := range found {
		fmt.Fprintf(&text, "%s: %s\nSchema: %s\n\n", e.Spec.Name, e.Spec.Description, e.Schema.Listed())
	}
	fmt.Fprintf(&text, `Call one with %s {"name":%q,"arguments":{...}}.`, catalog.CallTool, found[0].Spec.Name)
	return tool.TextResult(text.String()), nil
}
