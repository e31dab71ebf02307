package mcpserver

import (
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxUnread is how long a client that has closed its side may leave an answer
// unread.
const maxUnread = 10 * time.Second

// awaitAnswers waits until every request has its answer, or until the client
// takes none.
func (c *lineConn) awaitAnswers() {
	none := c.requests.none()
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

// unanswered are the requests that have no answer yet, but for those that have
// none before the client is gone.
type unanswered struct {
	mu      sync.Mutex // guards everything below
	waiting map[any]struct{}
	ended   bool          // no request will begin any more
	empty   chan struct{} // closed when ended and none waits; made by none
}

// begin notes a message that is a request.
func (u *unanswered) begin(m jsonrpc.Message) {
	request, ok := m.(*jsonrpc.Request)
	if !ok || !request.IsCall() || request.Method == "subscriptions/listen" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waiting == nil {
		u.waiting = map[any]struct{}{}
	}
	u.waiting[request.ID.Raw()] = struct{}{}
}

// end notes the answer to a request.
func (u *unanswered) end(id jsonrpc.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.waiting, id.Raw())
	if u.ended && len(u.waiting) == 0 {
		close(u.empty)
		u.ended = false // once
	}
}

// none returns a channel that is closed when every request has its answer. It is
// called once, when no request can begin any more.
func (u *unanswered) none() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.empty = make(chan struct{})
	if u.ended = len(u.waiting) > 0; !u.ended {
		close(u.empty)
	}
	return u.empty
}
