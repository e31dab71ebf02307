package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxAsked is how much of the server's text a question shows.
const maxAsked = 3 << 10

// The answers to a question.
const (
	accepted = "accept"
	declined = "decline"
	unasked  = "cancel"
)

// elicit asks the user of a call what the server wants to know. A question that belongs to no call is
// declined: a server could otherwise ask one user on behalf of another.
func (s *session) elicit(ctx context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	r, ok := ctx.Value(callKey{}).(*running)
	if !ok {
		r = s.only()
	}
	if r == nil {
		s.server.log.Warn("a question of the MCP server was declined, since it is not clear to which call it belongs")
		return &mcp.ElicitResult{Action: declined}, nil
	}
	question, err := s.question(request.Params)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	answer, err := r.call.AskForm(ctx, question)
	if err != nil {
		s.server.log.Warn("a question of the MCP server was not answered", "error", err)
		return &mcp.ElicitResult{Action: unasked}, nil
	}
	if !answer.Given {
		return &mcp.ElicitResult{Action: declined}, nil
	}
	result := &mcp.ElicitResult{Action: accepted}
	if len(answer.Values) > 0 {
		if err := json.Unmarshal(answer.Values, &result.Content); err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
	}
	return result, nil
}

// question returns the question that the user sees. It says who asks.
func (s *session) question(p *mcp.ElicitParams) (tool.Question, error) {
	if p == nil {
		return tool.Question{}, errors.New("the question is missing")
	}
	text := display.Cut(display.Visible(strings.TrimSpace(p.Message)), maxAsked)
	if p.Mode == "url" {
		at := display.Visible(p.URL)
		if len(at) > maxAsked/2 {
			return tool.Question{}, errors.New("the address is too long")
		}
		text = display.Head(text, maxAsked/2)
		return tool.Question{Text: fmt.Sprintf("The MCP server %s asks you to open this address:\n%s\n%s", s.server.name, at, text)}, nil
	}
	form, err := form(p.RequestedSchema)
	if err != nil {
		return tool.Question{}, err
	}
	return tool.Question{Text: fmt.Sprintf("The MCP server %s asks: %s", s.server.name, text), Schema: form}, nil
}

// formKeywords are the keywords of a property that the host shows in a form.
var formKeywords = []string{
	"type", "title", "description", "enum", "default", "format", "pattern", "minLength", "maxLength",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
}

// form returns the schema of an answer as the host accepts it: single values with a description. The
// alternatives of a choice are written as an enum.
func form(requested any) (json.RawMessage, error) {
	asked, _ := requested.(map[string]any)
	given, _ := asked["properties"].(map[string]any)
	properties := make(map[string]any, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		property, ok := given[name].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("the property %s is not a schema", display.Name(name))
		}
		shown := make(map[string]any, len(property))
		for _, keyword := range formKeywords {
			if value, ok := property[keyword]; ok {
				shown[keyword] = value
			}
		}
		if err := choices(property, shown); err != nil {
			return nil, fmt.Errorf("the property %s: %w", display.Name(name), err)
		}
		if text, _ := shown["description"].(string); text == "" {
			shown["description"] = name
			if title, _ := shown["title"].(string); title != "" {
				shown["description"] = title
			}
		}
		properties[name] = shown
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if required, ok := asked["required"].([]any); ok {
		schema["required"] = required
	}
	return json.Marshal(schema)
}

// choices writes titled alternatives as an enum, with their titles in the description.
func choices(property, shown map[string]any) error {
	if property["type"] == "array" {
		return errors.New("a choice of several values is not supported")
	}
	alternatives, _ := property["oneOf"].([]any)
	if len(alternatives) == 0 {
		return nil
	}
	var values []any
	var titles []string
	for _, alternative := range alternatives {
		one, _ := alternative.(map[string]any)
		value, ok := one["const"].(string)
		if !ok {
			return errors.New("an alternative without a const is not supported")
		}
		values = append(values, value)
		if title, _ := one["title"].(string); title != "" {
			titles = append(titles, value+": "+title)
		}
	}
	shown["enum"] = values
	text, _ := shown["description"].(string)
	shown["description"] = strings.TrimSpace(text + " (" + strings.Join(titles, "; ") + ")")
	return nil
}
