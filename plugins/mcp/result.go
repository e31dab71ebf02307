package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/sdk/tool"
)

// unknownType is the media type of data whose type the server does not say.
const unknownType = "application/octet-stream"

// content returns the result of a call for the host. The texts are those of the server, unchanged.
func content(from *mcp.CallToolResult, server string) (tool.Result, error) {
	var to tool.Result
	for _, part := range from.Content {
		converted, err := convert(part)
		if err != nil {
			return tool.Result{}, err
		}
		to.Content = append(to.Content, converted)
	}
	if from.StructuredContent != nil {
		raw, err := json.Marshal(from.StructuredContent)
		if err != nil {
			return tool.Result{}, fmt.Errorf("encode the structured result: %w", err)
		}
		to.Structured = raw
	}
	if !from.IsError {
		return to, nil
	}
	to.Error = tool.Errorf(tool.Failed, "the tool of the MCP server %s reports an error", server)
	if len(to.Content) == 0 && to.Structured == nil {
		to.Error = tool.Errorf(tool.Failed, "the tool of the MCP server %s reports an error, and does not say which", server)
	}
	return to, nil
}

// hidden returns a result without the credentials that the server was given, which a model has no use
// for. A server that encodes them in another way can still show them.
func (s *server) hidden(result tool.Result, err error) (tool.Result, error) {
	for _, secret := range s.credentials {
		for i := range result.Content {
			if part := &result.Content[i]; part.IsText() {
				part.Data = bytes.ReplaceAll(part.Data, []byte(secret), []byte(hidden))
			}
		}
		quoted, encodeErr := json.Marshal(secret)
		if encodeErr != nil {
			return tool.Result{}, encodeErr
		}
		result.Structured = bytes.ReplaceAll(result.Structured, quoted[1:len(quoted)-1], []byte(hidden))
	}
	return result, err
}

// hidden takes the place of a secret.
const hidden = "[hidden]"

// convert returns one part of a result.
func convert(part mcp.Content) (tool.Content, error) {
	switch c := part.(type) {
	case *mcp.TextContent:
		return tool.Text(valid(c.Text)), nil
	case *mcp.ImageContent:
		return tool.Content{Kind: tool.KindImage, MediaType: cmp.Or(c.MIMEType, unknownType), Data: c.Data}, nil
	case *mcp.AudioContent:
		return tool.Content{Kind: tool.KindAudio, MediaType: cmp.Or(c.MIMEType, unknownType), Data: c.Data}, nil
	case *mcp.ResourceLink:
		return tool.Content{Kind: tool.KindResourceLink, MediaType: c.MIMEType, URI: c.URI, Name: cmp.Or(c.Name, c.Title)}, nil
	case *mcp.EmbeddedResource:
		if c.Resource != nil {
			return resource(c.Resource), nil
		}
	}
	raw, err := json.Marshal(part) // of a kind that tools do not return
	if err != nil {
		return tool.Content{}, fmt.Errorf("encode a part of the result: %w", err)
	}
	return tool.Text(string(raw)), nil
}

// resource returns an embedded resource: text, or raw data. Its media type says which.
func resource(r *mcp.ResourceContents) tool.Content {
	c := tool.Content{Kind: tool.KindResource, MediaType: r.MIMEType, URI: r.URI, Data: r.Blob}
	switch {
	case len(r.Blob) == 0:
		c.Data = []byte(valid(r.Text))
		if !c.IsText() {
			c.MediaType = "text/plain"
		}
	case c.MediaType == "" || c.IsText() && !utf8.Valid(r.Blob):
		c.MediaType = unknownType
	}
	return c
}

func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
