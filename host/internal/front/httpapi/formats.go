package httpapi

import (
	"encoding/json"

	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// toolFormat lists tools in the form that some API wants them in.
type toolFormat struct {
	name string
	list func([]*catalog.Entry) any
}

func formats() []toolFormat {
	return []toolFormat{
		{"anthropic", func(entries []*catalog.Entry) any { return each(entries, anthropicTool) }},
		{"gemini", geminiTools},
		{"mcp", func(entries []*catalog.Entry) any { return map[string]any{"tools": each(entries, mcpTool)} }},
		{"openai", func(entries []*catalog.Entry) any { return each(entries, openAITool) }},
	}
}

func each(entries []*catalog.Entry, f func(*catalog.Entry) any) []any {
	all := make([]any, 0, len(entries))
	for _, e := range entries {
		all = append(all, f(e))
	}
	return all
}

// openAITool is for "tools" of chat completions.
func openAITool(e *catalog.Entry) any {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	return struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{e.Spec.Name, e.Spec.Description, e.Schema.Public()}}
}

// anthropicTool is for "tools" of messages.
func anthropicTool(e *catalog.Entry) any {
	return struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}{e.Spec.Name, e.Spec.Description, e.Schema.Public()}
}

// geminiTools is for "tools" of generateContent.
func geminiTools(entries []*catalog.Entry) any {
	type declaration struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		// "parameters" takes a part of OpenAPI's schemas only.
		Parameters json.RawMessage `json:"parametersJsonSchema"`
	}
	declarations := each(entries, func(e *catalog.Entry) any {
		return declaration{e.Spec.Name, e.Spec.Description, e.Schema.Public()}
	})
	return []any{map[string]any{"functionDeclarations": declarations}}
}

// mcpTool is a tool of the result of tools/list.
func mcpTool(e *catalog.Entry) any {
	type annotations struct {
		ReadOnly    bool `json:"readOnlyHint"`
		Destructive bool `json:"destructiveHint"`
		Idempotent  bool `json:"idempotentHint"`
		OpenWorld   bool `json:"openWorldHint"`
	}
	return struct {
		Name         string          `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  annotations     `json:"annotations"`
	}{
		e.Spec.Name, e.Spec.Title, e.Spec.Description, e.Schema.Public(), e.Output.Public(),
		annotations{ReadOnly: e.ReadOnly(), Destructive: e.Destructive(), Idempotent: e.Idempotent(), OpenWorld: e.Spec.OpenWorld},
	}
}
