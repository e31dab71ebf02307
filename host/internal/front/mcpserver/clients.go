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
	// MaxOutput is the most text that any client gets in one result. Clients of today
	// show up to 50,000 characters.
	MaxOutput tool.ByteSize = 48_000
	// maxResultLines is the most lines of one result.
	maxResultLines = 2_000
)

// Client is how a client that gives itself a name gets its results. The name picks the
// form of results and nothing else, because any program can give itself any name.
type Client struct {
	// MaxOutput is the most text that the client gets in one result; 0 means [MaxOutput],
	// which no client exceeds, or the known limit of the client.
	MaxOutput tool.ByteSize
	// Structured means that the client gets structured results, and the schemas of
	// these, besides texts.
	Structured bool
}

// knownOutput is what clients are known to show of one result.
var knownOutput = map[string]tool.ByteSize{
	"claude-code":      MaxOutput,
	"codex-mcp-client": 12_000, // it shows about 13,000 bytes, counted as JSON
}

// client returns how the client of a request gets its results.
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

// clientName is what the client calls itself, cut to what a log line can bear.
// A stateless call says it in its _meta, which is decoded already.
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

// versionOf is the revision of a request.
func versionOf(req mcp.Request) string {
	from, ok := req.(interface{ ProtocolVersion() string })
	if !ok {
		return ""
	}
	return from.ProtocolVersion()
}
