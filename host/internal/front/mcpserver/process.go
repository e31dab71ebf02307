package mcpserver

import (
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// Requests of a revision without sessions do not say which ones belong together, and two
// clients may have the same name. So the process that opened a request's connection is its
// session, if the system can identify that process.

// lookForProcess is the interval of checks whether a session's process still runs.
const lookForProcess = 5 * time.Second

// processKey is a process with one credential.
type processKey struct {
	process auth.Process
	owner   string
}

// processSession is the session of a process. It ends with the process.
type processSession struct {
	id    string
	used  time.Time
	timer *time.Timer // checks the process
}

// ofProcess returns the id of the session of a process and a credential, beginning one on the
// first call. It returns "" if the process is unknown. If the owner has too many sessions, the
// one that was unused for longest ends.
func (s *sessions) ofProcess(owner string, from auth.Peer) string {
	if from == nil {
		return ""
	}
	process, err := from()
	if err != nil {
		return ""
	}
	key := processKey{process, owner}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.byProcess[key]; known != nil {
		known.used = time.Now()
		return known.id
	}
	count := 0
	var oldest processKey
	for other, one := range s.byProcess {
		if other.owner != owner {
			continue
		}
		if count++; count == 1 || one.used.Before(s.byProcess[oldest].used) {
			oldest = other
		}
	}
	if count >= maxSessions {
		s.endProcess(oldest)
	}
	added := &processSession{id: auth.NewSession(), used: time.Now()}
	added.timer = time.AfterFunc(lookForProcess, func() { s.look(key, added) })
	if s.byProcess == nil {
		s.byProcess = make(map[processKey]*processSession)
	}
	s.byProcess[key] = added
	return added.id
}

// look ends the session if its process no longer runs.
func (s *sessions) look(key processKey, one *processSession) {
	lives := key.process.Lives()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.byProcess[key] != one:
	case lives:
		one.timer.Reset(lookForProcess)
	default:
		s.endProcess(key)
	}
}

// endProcess ends the session of a process. The caller holds s.mu.
func (s *sessions) endProcess(key processKey) {
	one := s.byProcess[key]
	one.timer.Stop()
	delete(s.byProcess, key)
	if s.ended != nil {
		s.ended(one.id)
	}
}
