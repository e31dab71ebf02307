package mcpserver

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/sdk/tool"
)

// progress passes a tool's progress on to the client, if the client asked for it. A slow
// client receives fewer reports and never slows down the tool.
type progress struct {
	sent chan struct{} // closed when all reports are sent; nil if the client did not ask

	mu       sync.Mutex         // guards the fields below
	reports  chan tool.Progress // reports to send; when full, further ones are dropped
	finished bool               // drops later reports: the call may outlive its request
}

const progressQueue = 64

// startProgress returns the progress of one request. The caller must call finish.
func startProgress(ctx context.Context, req *mcp.CallToolRequest) *progress {
	token := req.Params.GetProgressToken()
	if token == nil {
		return &progress{}
	}
	p := &progress{reports: make(chan tool.Progress, progressQueue), sent: make(chan struct{})}
	go p.send(ctx, req.Session, token) // owned by p; ends in finish
	return p
}

// report queues one report. It does not block.
func (p *progress) report(r tool.Progress) {
	if p.sent == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return
	}
	select {
	case p.reports <- r:
	default:
	}
}

// finish sends the queued reports and returns when they are sent. It drops later ones.
func (p *progress) finish() {
	if p.sent == nil {
		return
	}
	p.mu.Lock()
	p.finished = true
	close(p.reports)
	p.mu.Unlock()
	<-p.sent
}

// send delivers reports in order.
func (p *progress) send(ctx context.Context, session *mcp.ServerSession, token any) {
	defer close(p.sent)
	var c counter
	gone := false
	for r := range p.reports {
		if gone {
			continue
		}
		number, total := c.next(r)
		params := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: number, Total: total, Message: r.Message}
		gone = session.NotifyProgress(ctx, params) != nil
	}
}

// counter makes the reported numbers increase: "The progress value MUST increase with each
// notification" (MCP, basic/utilities/progress). A tool counts from zero, after the host has
// counted while the call waited.
type counter struct {
	begun      bool
	base, last float64
}

// next returns the number and the total to report.
func (c *counter) next(r tool.Progress) (number, total float64) {
	if c.begun && c.base+r.Progress <= c.last {
		c.base = c.last + 1 - min(r.Progress, 1)
	}
	c.begun, c.last = true, c.base+r.Progress
	if r.Total > 0 {
		total = c.base + r.Total
	}
	return c.last, total
}
