package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type sum struct {
	Sum float64 `json:"sum" jsonschema:"the sum"`
}

// goodServer is a server that keeps the protocol.
func goodServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "good", Version: "1.0.0"}, nil)
	type text struct {
		Text string `json:"text" jsonschema:"the text"`
	}
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Returns the text.", Annotations: readOnly}, func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	type numbers struct {
		A float64 `json:"a" jsonschema:"the first number"`
		B float64 `json:"b" jsonschema:"the second number"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "Adds two numbers.", Annotations: readOnly}, func(_ context.Context, _ *mcp.CallToolRequest, in numbers) (*mcp.CallToolResult, sum, error) {
		return nil, sum{in.A + in.B}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait", Description: "Reports progress and waits until it is canceled."}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half\x1b[2J"}); err != nil {
			return nil, nil, err
		}
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "the call was canceled")
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: "fail", Description: "Fails."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("the disk is on fire")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "media", Description: "Returns one part of each kind."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "t"}, &mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"}, &mcp.AudioContent{Data: []byte("wav"), MIMEType: "audio/wav"},
			&mcp.ResourceLink{URI: "ui://widget", Name: "widget", MIMEType: "text/html"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///a", MIMEType: "text/plain", Text: "a"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///b", MIMEType: "text/plain", Blob: []byte("\xff")}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///c", Text: "c"}},
		}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask", Description: "Asks the user."}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		schema := json.RawMessage(`{"type":"object","properties":{"branch":{"type":"string","title":"Branch"},"kind":{"type":"string","oneOf":[{"const":"a","title":"Apple"}]}},"required":["branch"]}`)
		question := &mcp.ElicitParams{Mode: "form", Message: "Which branch?\u202e", RequestedSchema: schema}
		if r.ProtocolVersion() >= "2026" { // questions are part of the result, and answers of the next call
			answer, ok := r.Params.InputResponses["question"].(*mcp.ElicitResult)
			if !ok {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"question": question}}, nil, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Action, answer.Content)}}}, nil, nil
		}
		answer, err := r.Session.Elicit(ctx, question)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(answer.Action, answer.Content)}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "env", Description: "Returns its environment and directory."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		dir, err := os.Getwd() //nolint:forbidigo // the test wants to know it
		return &mcp.CallToolResult{
			Content:           []mcp.Content{&mcp.TextContent{Text: strings.Join(append(os.Environ(), "dir="+dir), "\n")}},
			StructuredContent: map[string]string{"key": os.Getenv("API_KEY")},
		}, nil, err
	})
	mcp.AddTool(s, &mcp.Tool{Name: "crash", Description: "Ends the server."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "fatal: "+os.Getenv("API_TOKEN")+" is wrong\x1b[2J")
		os.Exit(3)
		return nil, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "look", Description: "Ends the server, and changes nothing.", Annotations: readOnly}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		os.Exit(4)
		return nil, nil, nil
	})
	return s
}

// olderTransport makes a server speak revisions before 2026-07-28 only.
type olderTransport struct{ mcp.StdioTransport }

// SupportsProtocolVersion implements [mcp.ProtocolVersionSupporter].
func (*olderTransport) SupportsProtocolVersion(version string) bool { return version < "2026" }
