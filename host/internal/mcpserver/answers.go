package mcpserver

import (
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxUnread is how long a client that has closed its side may leave an answer
// unread.
const maxUnread = 10 * time.Second

// awaitAnswers waits until every call has its answer, or until the client takes
// none.
func (c *lineConn) awaitAnswers() {
	none := c.calls.none()
	tick := time.NewTicker(maxUnread / 10)
	defer tick.Stop()
	for {
		select {
		case <-none:
			return
		case <-c.closed:
			return
		case <-tick.C:
			if since := c.writing.Load(); since != nil && time.Since(*since) > maxUnread {
				return
			}
		}
	}
}

// calls are the tools/call requests that have no answer yet.
type calls struct {
	mu      sync.Mutex // guards everything below
	waiting map[any]struct{}
	ended   bool          // no call will begin any more
	empty   chan struct{} // closed when ended and none waits; made by none
}

// begin notes a message that is a call.
func (c *calls) begin(m jsonrpc.Message) {
	request, ok := m.(*jsonrpc.Request)
	if !ok || request.Method != "tools/call" || !request.IsCall() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[any]struct{}{}
	}
	c.waiting[request.ID.Raw()] = struct{}{}
}

// end notes the answer to a request.
func (c *calls) end(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id.Raw())
	if c.ended && len(c.waiting) == 0 {
		close(c.empty)
		c.ended = false // once
	}
}

// none returns a channel that is closed when every call has its answer. It is
// called once, when no call can begin any more.
func (c *calls) none() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.empty = make(chan struct{})
	if c.ended = len(c.waiting) > 0; !c.ended {
		close(c.empty)
	}
	return c.empty
}
