package relay

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// session is how a client of a revision with sessions began: it is told to each
// further host, so that the client need not know that there is one. A client of
// a stateless revision has none.
type session struct {
	mu      sync.Mutex // guards everything below
	begun   []byte     // its initialize request, once it was answered
	version string     // of the protocol, as it was agreed on
	ready   []byte     // its notifications/initialized

	replayID json.RawMessage // of the initialize request sent to this host; nil: none is awaited
	answer   chan []byte     // has room for the answer to it
}

// note notes an initialize request and its answer.
func (s *session) note(request, answer []byte) {
	version, err := agreed(answer)
	if err != nil {
		return // the client is told so, and may try again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.version = request, version
}

func (s *session) noteInitialized(notification []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = notification
}

// initialized returns what the client has said when it was ready, or nil.
func (s *session) initialized() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// replay returns what begins the session at a further host, if there is a
// session.
func (s *session) replay() (line []byte, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun == nil {
		return nil, false
	}
	// An id that the client cannot have chosen.
	s.replayID = json.RawMessage(`"relay-` + rand.Text() + `"`)
	s.answer = make(chan []byte, 1)
	return with(s.begun, "id", s.replayID), true
}

// takes reports whether an answer is the one to the replay, which is not the
// client's.
func (s *session) takes(m message, line []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replayID == nil || key(m.ID) != key(s.replayID) {
		return false
	}
	s.replayID = nil
	s.answer <- line
	return true
}

// replayed waits until the host has begun the session as the one before has.
func (s *session) replayed(gone <-chan struct{}) error {
	timer := time.NewTimer(maxWelcome)
	defer timer.Stop()
	select {
	case <-gone:
		return ErrGone
	case <-timer.C:
		return fmt.Errorf("relay MCP: the next host has not answered within %s", maxWelcome)
	case answer := <-s.answer:
		version, err := agreed(answer)
		if err != nil {
			return fmt.Errorf("relay MCP: the next host refuses the client: %w", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if version != s.version {
			return fmt.Errorf("relay MCP: the next host speaks revision %s, the client %s; connect again", version, s.version)
		}
		return nil
	}
}

// agreed is the revision in the answer to an initialize request.
func agreed(answer []byte) (version string, err error) {
	var a struct {
		Result struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"result"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	switch err := json.Unmarshal(answer, &a); {
	case err != nil:
		return "", err
	case a.Error.Message != "":
		return "", errors.New(a.Error.Message)
	case a.Result.ProtocolVersion == "":
		return "", errors.New("its answer names no revision")
	}
	return a.Result.ProtocolVersion, nil
}
