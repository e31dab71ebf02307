package mcpserver

import (
	"cmp"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// MaxOutput is the maximum and the default for the text of one result. Today's clients
	// show up to 50,000 characters.
	MaxOutput tool.ByteSize = 48_000
	// maxResultLines is the maximum number of lines of one result.
	maxResultLines = 2_000
)

// Client says how a client with a given name receives lists and results. The name affects only
// their form, because any program can claim any name.
type Client struct {
	// MaxOutput limits the text of one result; 0 means the client's known limit, or else
	// [MaxOutput]. Higher values mean [MaxOutput].
	MaxOutput tool.ByteSize
	// Structured adds structured results and their schemas to the text.
	Structured bool
	// SearchAbove is how many tools a list has at most before it has only the core tools,
	// find_tool and call_tool; 0 means that a list has all tools.
	SearchAbove int
}

// knownOutput is how much of one result known clients show.
var knownOutput = map[string]tool.ByteSize{
	"claude-code":      MaxOutput,
	"codex-mcp-client": 12_000, // shows about 13,000 bytes, counted as JSON
}

// client returns how the client of a request receives its results.
func (s *Server) client(req mcp.Request, caller auth.Caller) Client {
	name := clientName(req)
	var c Client
	if s.opts.Client != nil {
		c = s.opts.Client(name)
	}
	c.MaxOutput = min(MaxOutput, cmp.Or(c.MaxOutput, knownOutput[name], MaxOutput))
	c.Structured = (c.Structured || caller.Structured) && versionOf(req) >= firstWithStructured
	return c
}

// presentation returns the form of the client's results for the pipeline.
func (c Client) presentation() pipeline.Presentation {
	return pipeline.Presentation{MaxOutput: c.MaxOutput, MaxLines: maxResultLines, TextOnly: !c.Structured}
}

// clientName returns the name that the client gives itself, shortened for the log. A stateless
// request has it in its _meta, which is already decoded.
func clientName(req mcp.Request) string {
	if call, ok := req.(*mcp.CallToolRequest); ok {
		if told, ok := call.Params.Meta[mcp.MetaKeyClientInfo].(map[string]any); ok {
			name, _ := told["name"].(string)
			return excerpt.Printable(name, maxClientName)
		}
	}
	from, ok := req.(interface{ ClientInfo() *mcp.Implementation })
	if !ok || from.ClientInfo() == nil {
		return ""
	}
	return excerpt.Printable(from.ClientInfo().Name, maxClientName)
}

const maxClientName = 100

// versionOf returns the protocol revision of a request.
func versionOf(req mcp.Request) string {
	from, ok := req.(interface{ ProtocolVersion() string })
	if !ok {
		return ""
	}
	return from.ProtocolVersion()
}
