package httpapi

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Tool is one tool in a list.
type Tool struct {
	Name         string          `json:"name"`
	Plugin       string          `json:"plugin"`
	Tier         tool.Tier       `json:"tier"`
	TierWhen     []tool.TierRule `json:"tier_when,omitempty"`
	Title        string          `json:"title,omitempty"`
	Category     string          `json:"category,omitempty"`
	Description  string          `json:"description"`
	Aliases      []string        `json:"aliases,omitempty"`
	Idempotent   bool            `json:"idempotent"`
	OpenWorld    bool            `json:"open_world"`
	Destructive  bool            `json:"destructive"`
	Timeout      string          `json:"timeout"`
	MaxOutput    string          `json:"max_output"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// ToolDetails is one tool, with what only people read.
type ToolDetails struct {
	Tool

	// Arguments describe the arguments in words, with their roles; Result the structured result.
	Arguments []schema.Property `json:"arguments"`
	Result    []schema.Property `json:"result,omitempty"`
	// Approval is what usually happens to calls of each tier; Rules may decide otherwise.
	Approval []pipeline.Usual `json:"approval"`
	Rules    []string         `json:"rules,omitempty"`
}

// newTool converts a tool of the catalog.
func newTool(e *catalog.Entry) Tool {
	return Tool{
		Name: e.Spec.Name, Plugin: e.Plugin, Tier: e.Tier, TierWhen: e.Spec.TierWhen,
		Title: e.Spec.Title, Category: e.Spec.Category, Description: e.Spec.Description, Aliases: e.Aliases,
		Idempotent: e.Idempotent(), OpenWorld: e.Spec.OpenWorld, Destructive: e.Destructive(),
		Timeout: e.Timeout.String(), MaxOutput: e.MaxOutput.String(),
		InputSchema: e.Schema.Public(), OutputSchema: e.Output.Public(),
	}
}

// listTools answers GET /v1/tools. The parameter format selects the form of an API.
func (s *Server) listTools(r *request) (any, error) {
	format := r.query.text("format")
	i := slices.IndexFunc(formats(), func(f toolFormat) bool { return f.name == format })
	if i < 0 {
		var names []string
		for _, f := range formats() {
			names = append(names, f.name)
		}
		return nil, badRequest.problem("format is %q, expected one of %s", excerpt.Printable(format, maxShown), strings.Join(names[1:], ", ")).
			hint("leave it out to get everything that the host knows about the tools")
	}
	s.awaitTools(r.Context())
	return formats()[i].list(entriesFor(s.opts.Catalog.Entries(), r.caller)), nil
}

// entriesFor returns the tools that a caller sees. The list is complete, so nothing must be
// searched.
func entriesFor(entries []*catalog.Entry, caller auth.Caller) []*catalog.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e *catalog.Entry) bool {
		return e.Searches() || !e.OfHost() && !caller.MayUse(e.Spec.Name)
	})
}

// getTool answers GET /v1/tools/{name}. The name may be an alias.
func (s *Server) getTool(r *request) (any, error) {
	entry, err := s.lookUp(r.Context(), r.PathValue("name"), r.caller)
	if err != nil {
		return nil, err
	}
	details := ToolDetails{Tool: newTool(entry), Arguments: append([]schema.Property{}, entry.Schema.Arguments()...), Result: schema.Describe(entry.Output.Public())}
	details.Approval, details.Rules = s.opts.Pipeline.Usual(entry)
	return details, nil
}

// lookUp finds a tool. If there is none yet, it waits for plugins that are starting.
func (s *Server) lookUp(ctx context.Context, name string, caller auth.Caller) (*catalog.Entry, error) {
	entry, err := s.opts.Catalog.LookupFor(name, caller.MayUse)
	if err != nil {
		s.awaitTools(ctx)
		entry, err = s.opts.Catalog.LookupFor(name, caller.MayUse)
	}
	if err != nil {
		return nil, err
	}
	return entry, nil
}

// awaitTools waits until the tools of all plugins are known, for some seconds at most.
func (s *Server) awaitTools(ctx context.Context) {
	if s.opts.Ready == nil {
		return
	}
	timer := time.NewTimer(s.timing.ready)
	defer timer.Stop()
	select {
	case <-s.opts.Ready:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// toolFormat lists tools in the form of one API.
type toolFormat struct {
	name string
	list func([]*catalog.Entry) any
}

// formats returns the host's own form and those of other APIs.
func formats() []toolFormat {
	return []toolFormat{
		{"", func(entries []*catalog.Entry) any {
			return each(entries, func(e *catalog.Entry) any { return newTool(e) })
		}},
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

// openAITool is an element of "tools" of OpenAI's chat completions.
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

// anthropicTool is an element of "tools" of Anthropic's messages.
func anthropicTool(e *catalog.Entry) any {
	return struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}{e.Spec.Name, e.Spec.Description, e.Schema.Public()}
}

// geminiTools is "tools" of Gemini's generateContent.
func geminiTools(entries []*catalog.Entry) any {
	type declaration struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		// "parameters" takes only a part of OpenAPI's schemas.
		Parameters json.RawMessage `json:"parametersJsonSchema"`
	}
	declarations := each(entries, func(e *catalog.Entry) any {
		return declaration{e.Spec.Name, e.Spec.Description, e.Schema.Public()}
	})
	return []any{map[string]any{"functionDeclarations": declarations}}
}

// mcpTool is an element of the result of MCP's tools/list.
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
