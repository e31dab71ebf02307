package mcpserver

import (
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// A revision without sessions says nothing about which requests belong together, and
// two clients may have the same name. So the session of such a request is the process
// that has opened its connection, if the system tells which one that is.

// lookForProcess is how often it is looked whether the process of a session lives.
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
	timer *time.Timer // looks for the process
}

// ofProcess returns the id of the session of a process with a credential, which begins
// with its first call; "" if the process is not known. If the owner has too many, that
// which was not used for longest ends.
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

// look ends the session of a process that does not live any more.
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

// endProcess ends the session of a process. s.mu is held.
func (s *sessions) endProcess(key processKey) {
	one := s.byProcess[key]
	one.timer.Stop()
	delete(s.byProcess, key)
	if s.ended != nil {
		s.ended(one.id)
	}
}
