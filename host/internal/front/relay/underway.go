package relay

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxUnderWay bounds the requests of a client that have no answer yet. One
	// more is refused.
	maxUnderWay = 1000
	// maxKept bounds a request that is kept to be sent again. A longer one is
	// answered with an error.
	maxKept = 64 * tool.KiB
	// maxHosts bounds the hosts that a request is sent to: it may be what ended
	// them.
	maxHosts = 3
)

// request is one that has no answer yet.
type request struct {
	id     json.RawMessage
	method string
	line   []byte // nil once it is sent, if it is not to be sent again
	hosts  int    // that have had it
	whole  bool   // whether the last of them can have had all of it
}

// underWay are the requests that have no answer yet, in the order in which they
// came.
type underWay struct {
	mu       sync.Mutex // guards requests, and what is in them
	requests []*request
}

// begin notes a request.
func (u *underWay) begin(m message, line []byte) (*request, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.requests) >= maxUnderWay {
		return nil, fmt.Errorf("%d requests are under way; wait for answers", maxUnderWay)
	}
	q := &request{id: m.ID, method: m.Method, line: line}
	u.requests = append(u.requests, q)
	return q, nil
}

// sent notes how much of a request a host was given.
func (u *underWay) sent(q *request, bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	q.hosts++
	if q.whole = bytes >= len(q.line); q.whole && !q.repeatable() {
		q.line = nil
	}
}

// end forgets a request that is answered and returns it, or nil.
func (u *underWay) end(id json.RawMessage) *request {
	u.mu.Lock()
	defer u.mu.Unlock()
	answered := key(id)
	i := slices.IndexFunc(u.requests, func(q *request) bool { return key(q.id) == answered })
	if i < 0 {
		return nil
	}
	q := u.requests[i]
	u.requests = slices.Delete(u.requests, i, i+1)
	return q
}

// cancel forgets the request that a notification cancels.
func (u *underWay) cancel(notification []byte) {
	var m struct {
		Params struct {
			RequestID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(notification, &m) == nil && m.Params.RequestID != nil {
		u.end(m.Params.RequestID)
	}
}

// all returns the requests under way.
func (u *underWay) all() []*request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.requests)
}

// spare forgets which hosts have had the requests under way: the last one has
// ended by itself, and not because of any of them.
func (u *underWay) spare() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, q := range u.requests {
		q.hosts = 0
	}
}

// lose returns those requests that must not be sent to another host.
func (u *underWay) lose() (lost []*request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, q := range u.requests {
		if q.line == nil || q.hosts >= maxHosts {
			lost = append(lost, q)
		}
	}
	return lost
}

// repeatable reports whether a request has no effect, so that it can be sent to
// the next host, too.
func (q *request) repeatable() bool {
	switch q.method {
	case "initialize": // it is kept for the sessions that follow
		return true
	case "server/discover", "ping", "tools/list", "resources/list", "resources/templates/list", "resources/read",
		"prompts/list", "prompts/get", "completion/complete", "subscriptions/listen":
		return len(q.line) <= int(maxKept)
	}
	return false
}

// lost is the answer to a request whose host has gone.
func (q *request) lost() []byte {
	switch {
	case q.method == "tools/call" && q.whole:
		return failure(q.id, tool.UnknownOutcome,
			"the host ended during this call, and nobody knows whether the call had its effect: look before you call again")
	case q.method == "tools/call":
		return failure(q.id, tool.Unavailable, "the host ended before it had this call, which has had no effect; call again")
	}
	return failure(q.id, tool.Unavailable, "the host ended before it had answered; ask again")
}
