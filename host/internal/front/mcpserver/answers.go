package mcpserver

import (
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolhost/toolhost/host/internal/front/lines"
)

// maxUnread is how long a client that has closed its side may leave an answer unread.
const maxUnread = 10 * time.Second

// maxStop is how long a stopping host waits for clients to read the answers to canceled calls.
const maxStop = time.Second

// lookEvery is the interval of checks whether a client is still connected.
const lookEvery = time.Second

// awaitAnswers waits until every request has its answer, for at most most if that is more than
// zero. It stops waiting for a client that does not read. If the client is gone, it also
// cancels the client's calls.
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
		case <-c.writer.Closed():
			return
		case <-over:
			return
		case <-tick.C:
			if c.writer.Unread() > maxUnread {
				return
			}
			if lines.Gone(c.out) {
				c.left()
				return
			}
		}
	}
}

// unanswered holds the requests without an answer, except subscriptions, which end with the
// client.
type unanswered struct {
	mu      sync.Mutex // guards the fields below
	waiting map[any]struct{}
	empty   chan struct{} // created by none; closed once no request waits
	closed  bool          // empty is closed
}

// maxUnanswered bounds the requests of one client that wait for an answer, since the client
// may leave each result unread.
const maxUnanswered = 128

// begin records a request. It returns false if there are too many, and ignores other messages.
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

// end records that a request has its answer.
func (u *unanswered) end(id jsonrpc.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.waiting, id.Raw())
	if len(u.waiting) == 0 {
		u.close()
	}
}

// none returns a channel that is closed once every request has its answer.
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

// close closes the channel of none. The caller holds u.mu.
func (u *unanswered) close() {
	if u.empty != nil && !u.closed {
		u.closed = true
		close(u.empty)
	}
}
