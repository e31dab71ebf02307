package mcpserver

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// firstWithStructured is the first revision whose results have structured
	// content.
	firstWithStructured = "2025-06-18"

	// Keys of the host in the _meta of a result.
	metaCallID   = "toolhost/call_id"
	metaMetadata = "toolhost/metadata"
	metaError    = "toolhost/error"
	metaPending  = "toolhost/pending"

	// metaContext is the key in the _meta of a tools/call request for what the agent says about
	// the call.
	metaContext = "toolhost/context"
)

// render returns the outcome of a call in the protocol's form. Known clients show a model
// either the texts of a result or its structured content. So render sends structured content
// only to a client that asks for it; other clients receive it as text if the result has no
// text.
func (d *deferred) render(outcome operation.Outcome, structured bool) *mcp.CallToolResult {
	r := outcome.Result
	out := &mcp.CallToolResult{
		Meta:    mcp.Meta{metaCallID: outcome.ID},
		Content: make([]mcp.Content, 0, len(r.Content)+1),
	}
	if r.Error != nil {
		out.IsError = true
		out.Meta[metaError] = failure(r.Error)
		out.Content = append(out.Content, &mcp.TextContent{Text: r.Error.ModelText()})
	}
	if outcome.Pending {
		out.Meta[metaPending] = outcome.State
	}
	if r.Metadata != nil {
		out.Meta[metaMetadata] = r.Metadata
	}
	for _, c := range r.Content {
		out.Content = append(out.Content, d.content(c))
	}
	switch {
	case r.Structured == nil:
	case structured:
		out.StructuredContent = d.structured(r.Structured)
	case len(r.Content) == 0:
		out.Content = append(out.Content, d.text(r.Structured))
	}
	return out
}

// failure describes an error to programs; models read the text.
func failure(e *tool.Error) map[string]any {
	facts := map[string]any{"code": e.Code, "retryable": e.Retryable}
	if e.RetryAfter > 0 {
		facts["retry_after_ms"] = e.RetryAfter.Milliseconds()
	}
	return facts
}

// content returns one part of a result.
func (d *deferred) content(c tool.Content) mcp.Content {
	switch c.Kind {
	case tool.KindText:
		return d.text(c.Data)
	case tool.KindImage:
		return d.media("image", c, &mcp.ImageContent{Data: c.Data, MIMEType: c.MediaType})
	case tool.KindAudio:
		return d.media("audio", c, &mcp.AudioContent{Data: c.Data, MIMEType: c.MediaType})
	case tool.KindResourceLink:
		return &mcp.ResourceLink{URI: c.URI, Name: c.Name, MIMEType: c.MediaType}
	case tool.KindResource:
		resource := &mcp.ResourceContents{URI: c.URI, MIMEType: c.MediaType}
		if c.IsText() {
			resource.Text = string(c.Data)
		} else {
			resource.Blob = c.Data
		}
		return &mcp.EmbeddedResource{Resource: resource}
	}
	return &mcp.TextContent{Text: "[content of a kind that this version does not know]"}
}
