package relay

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxRequests bounds the open requests of a client. Further ones are refused.
	maxRequests = 1000
	// maxKept bounds a request that is kept to be sent again. A longer one gets an
	// error.
	maxKept = 64 * tool.KiB
	// maxHosts bounds the hosts that a request is sent to: it may be the reason why
	// they ended.
	maxHosts = 3
)

// request is a request without an answer.
type request struct {
	id     json.RawMessage
	method string
	line   []byte // nil once it is sent, if it must not be sent again
	hosts  int    // how many hosts got it
	whole  bool   // the last host may have received all of it
}

// requests are the requests without an answer, in the order of their arrival.
type requests struct {
	mu   sync.Mutex // guards open and its elements
	open []*request
}

// begin adds a request.
func (r *requests) begin(m message, line []byte) (*request, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.open) >= maxRequests {
		return nil, fmt.Errorf("%d requests are open; wait for answers", maxRequests)
	}
	q := &request{id: m.ID, method: m.Method, line: line}
	r.open = append(r.open, q)
	return q, nil
}

// sent records how many bytes of a request a host was sent.
func (r *requests) sent(q *request, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q.hosts++
	if q.whole = bytes >= len(q.line); q.whole && !q.repeatable() {
		q.line = nil
	}
}

// end removes and returns a request that is answered; nil if there is none.
func (r *requests) end(id json.RawMessage) *request {
	r.mu.Lock()
	defer r.mu.Unlock()
	answered := key(id)
	i := slices.IndexFunc(r.open, func(q *request) bool { return key(q.id) == answered })
	if i < 0 {
		return nil
	}
	q := r.open[i]
	r.open = slices.Delete(r.open, i, i+1)
	return q
}

// cancel removes the request that a notification cancels.
func (r *requests) cancel(notification []byte) {
	var m struct {
		Params struct {
			RequestID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(notification, &m) == nil && m.Params.RequestID != nil {
		r.end(m.Params.RequestID)
	}
}

// all returns the open requests.
func (r *requests) all() []*request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.open)
}

// spare resets the number of hosts that got each request: the last host has ended
// by itself, and not because of a request.
func (r *requests) spare() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.open {
		q.hosts = 0
	}
}

// lose returns the requests that must not be sent to another host.
func (r *requests) lose() (lost []*request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.open {
		if q.line == nil || q.hosts >= maxHosts {
			lost = append(lost, q)
		}
	}
	return lost
}

// repeatable reports whether a request has no effect and can be sent to the next
// host, too.
func (q *request) repeatable() bool {
	switch q.method {
	case "initialize": // kept for the sessions that follow
		return true
	case "server/discover", "ping", "tools/list", "resources/list", "resources/templates/list", "resources/read",
		"prompts/list", "prompts/get", "completion/complete", "subscriptions/listen":
		return len(q.line) <= int(maxKept)
	}
	return false
}

// lost returns the answer to a request whose host is gone.
func (q *request) lost() []byte {
	switch {
	case q.method == "tools/call" && q.whole:
		return failure(q.id, tool.UnknownOutcome,
			"the host ended during this call, and whether the call had an effect is not known: check before you call again")
	case q.method == "tools/call":
		return failure(q.id, tool.Unavailable, "the host ended before it received this call, so the call had no effect; call again")
	}
	return failure(q.id, tool.Unavailable, "the host ended before it answered; repeat the request")
}
