package mcpserver

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
)

const (
	// maxSessions bounds the sessions over HTTP of one credential. Beyond it, the session that
	// was idle for longest ends: clients often leave sessions behind, but rarely need a
	// thousand.
	maxSessions = 1024
	// sessionTimeout ends an idle session over HTTP. A session with a request under way, or
	// with an open stream, is not idle.
	sessionTimeout = time.Hour
)

// sessions holds the sessions of clients: over HTTP, over pairs of streams, and of processes
// whose revision has no sessions. The zero value is ready to use.
type sessions struct {
	ended     func(id string) // called when a session has ended; may be nil
	mu        sync.Mutex      // guards all maps and their values
	byID      map[string]*session
	byProcess map[processKey]*processSession
	closing   sync.WaitGroup
}

// session is the session of one client.
type session struct {
	clientCalls

	// who returns the caller. It is nil over HTTP, where each request has its own.
	who func() (auth.Caller, error)

	// The fields below are for sessions over HTTP only.
	server *mcp.ServerSession
	owner  string
	open   int         // unanswered requests
	idle   time.Time   // when the last request was answered
	timer  *time.Timer // ends it after sessionTimeout
}

// ownerOf identifies a caller by its credential. A session belongs to the caller that began
// it.
func ownerOf(c auth.Caller) string {
	return strings.Join([]string{strconv.Quote(c.User), strconv.Quote(c.Token), c.Roles.String()}, " ")
}

// begin adds the session of a pair of streams.
func (s *sessions) begin(id string, who func() (auth.Caller, error)) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := &session{who: who}
	s.put(id, added)
	return added
}

// beginHTTP adds a session over HTTP. If the owner has too many, it ends the one that was idle
// for longest.
func (s *sessions) beginHTTP(server *mcp.ServerSession, owner string) {
	id := server.ID()
	s.mu.Lock()
	defer s.mu.Unlock()
	if oldest, full := s.crowded(owner); full && oldest != "" {
		s.remove(oldest)
	}
	added := &session{server: server, owner: owner, idle: time.Now()}
	added.timer = time.AfterFunc(sessionTimeout, func() { s.expire(id) })
	s.put(id, added)
}

func (s *sessions) put(id string, added *session) {
	if s.byID == nil {
		s.byID = make(map[string]*session)
	}
	s.byID[id] = added
}

// crowded reports whether an owner has reached its limit of sessions, and the id of the one
// that was idle for longest, or "".
func (s *sessions) crowded(owner string) (oldest string, full bool) {
	count := 0
	var since time.Time
	for id, one := range s.byID {
		if one.server == nil || one.owner != owner {
			continue
		}
		count++
		if one.open == 0 && (oldest == "" || one.idle.Before(since)) {
			oldest, since = id, one.idle
		}
	}
	return oldest, count >= maxSessions
}

// enter counts a request of a session over HTTP until leave is called. ok is false if the
// owner has no session with this id.
func (s *sessions) enter(id, owner string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byID[id]
	if one == nil || one.server == nil || one.owner != owner {
		return nil, false
	}
	one.open++
	one.timer.Stop()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if one.open--; one.open == 0 && s.byID[id] == one {
			one.idle = time.Now()
			one.timer.Reset(sessionTimeout)
		}
	}, true
}

// of returns a session, or nil.
func (s *sessions) of(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// end ends a session over HTTP and reports whether the owner had one with this id.
func (s *sessions) end(id, owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byID[id]
	if one == nil || one.server == nil || one.owner != owner {
		return false
	}
	s.remove(id)
	return true
}

// expire ends a session unless a request arrived at the last moment.
func (s *sessions) expire(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.byID[id]; one != nil && one.open == 0 {
		s.remove(id)
	}
}

// remove ends a session and its requests. It cancels calls that wait for a person; the others
// continue. The caller holds s.mu.
func (s *sessions) remove(id string) {
	one := s.byID[id]
	if one == nil {
		return
	}
	s.drop(id)
	one.cancel(errGone)
	if one.server == nil {
		return
	}
	one.timer.Stop()
	s.closing.Go(func() { _ = one.server.Close() }) // ends with its calls; close waits for it
}

// forget removes the session of a pair of streams, whose calls have ended.
func (s *sessions) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(id)
}

// drop removes a session. The caller holds s.mu.
func (s *sessions) drop(id string) {
	delete(s.byID, id)
	if s.ended != nil {
		s.ended(id)
	}
}

// close ends all sessions over HTTP and returns when their calls have ended.
func (s *sessions) close() {
	s.mu.Lock()
	for id, one := range s.byID {
		if one.server != nil {
			s.remove(id)
		}
	}
	for key := range s.byProcess {
		s.endProcess(key)
	}
	s.mu.Unlock()
	s.closing.Wait()
}
