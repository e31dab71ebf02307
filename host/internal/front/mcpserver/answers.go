package mcpserver

import (
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/host/internal/front/lines"
)

// maxUnread is how long a client that has closed its side may leave an answer
// unread.
const maxUnread = 10 * time.Second

// maxStop is how long a host that stops waits for the answers to canceled calls
// to be taken.
const maxStop = time.Second

// lookEvery is how often it is looked whether a client is still there.
const lookEvery = time.Second

// awaitAnswers waits until every request has its answer, but not longer than
// most if that is more than zero, nor for a client that takes no answer, or that
// is gone: the calls of that one are canceled.
func (c *lineConn) awaitAnswers(most time.Duration) {
	none := c.requests.none()
	var over <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-none:
			return
		case <-c.closed:
			return
		case <-over:
			return
		case <-tick.C:
			if since := c.writing.Load(); since != nil && time.Since(*since) > maxUnread {
				return
			}
			if lines.Gone(c.out) {
				c.left()
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
	empty   chan struct{} // made by none, and closed the first time that none waits
	closed  bool          // empty is
}

// maxUnanswered bounds the requests of one client that have no answer yet, each
// with a result that it may leave unread.
const maxUnanswered = 128

// begin notes a message that is a request. It reports false if there are too
// many.
func (u *unanswered) begin(m jsonrpc.Message) bool {
	request, ok := m.(*jsonrpc.Request)
	if !ok || !request.IsCall() || request.Method == "subscriptions/listen" {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.waiting) == maxUnanswered {
		return false
	}
	if u.waiting == nil {
		u.waiting = map[any]struct{}{}
	}
	u.waiting[request.ID.Raw()] = struct{}{}
	return true
}

// end notes the answer to a request.
func (u *unanswered) end(id jsonrpc.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.waiting, id.Raw())
	if len(u.waiting) == 0 {
		u.close()
	}
}

// none returns a channel that is closed when every request has its answer.
func (u *unanswered) none() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.empty == nil {
		u.empty = make(chan struct{})
	}
	if len(u.waiting) == 0 {
		u.close()
	}
	return u.empty
}

// close says that every request has its answer. u.mu is held.
func (u *unanswered) close() {
	if u.empty != nil && !u.closed {
		u.closed = true
		close(u.empty)
	}
}
