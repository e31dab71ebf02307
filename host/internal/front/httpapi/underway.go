package httpapi

import (
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// underWay counts the requests of each credential that have not been answered,
// so that one which waits for many things leaves room for the others: for the
// person who decides, above all.
type underWay struct {
	most int // of one credential
	all  int // of all together; 0 means no bound

	mu       sync.Mutex // guards everything below
	requests map[credential]int
	total    int
}

// credential tells callers apart by what they came with.
type credential struct {
	user, token string
	roles       auth.Roles
}

// enter counts a request in, and returns what counts it out.
func (u *underWay) enter(caller auth.Caller) (leave func(), err error) {
	key := credential{caller.User, caller.Token, caller.Roles}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.requests == nil {
		u.requests = make(map[credential]int)
	}
	if u.requests[key] == u.most || u.all > 0 && u.total == u.all {
		p := tooMany().problem("%d requests of this credential are open already, and %d in all", u.requests[key], u.total)
		p.retryAfter = time.Second
		return nil, p.hint("wait for some of them, or follow /v1/events once instead of asking often")
	}
	u.requests[key]++
	u.total++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.total--
		if u.requests[key]--; u.requests[key] == 0 {
			delete(u.requests, key)
		}
	}, nil
}
