package httpapi

import (
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// requestLimit bounds the open requests of each credential, so that a caller that
// waits for many things does not block others, such as the person who decides.
type requestLimit struct {
	most int // of one credential
	all  int // of all together; 0 means no bound

	mu       sync.Mutex // guards everything below
	requests map[credential]int
	total    int
}

// credential identifies callers by their credentials.
type credential struct {
	user, token string
	roles       auth.Roles
}

// enter counts a request until leave is called. It fails if there are too many.
func (l *requestLimit) enter(caller auth.Caller) (leave func(), err error) {
	key := credential{caller.User, caller.Token, caller.Roles}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests == nil {
		l.requests = make(map[credential]int)
	}
	if l.requests[key] == l.most || l.all > 0 && l.total == l.all {
		p := tooMany().problem("%d requests of this credential are open already, and %d in all", l.requests[key], l.total)
		p.retryAfter = time.Second
		return nil, p.hint("wait for some of them, or follow /v1/events once instead of asking often")
	}
	l.requests[key]++
	l.total++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.total--
		if l.requests[key]--; l.requests[key] == 0 {
			delete(l.requests, key)
		}
	}, nil
}
