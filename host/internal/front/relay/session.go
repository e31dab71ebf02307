package relay

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// session records how a client of a revision with sessions began. The relay repeats it
// for each further host, so that the client does not notice the change. A client of a
// stateless revision has no session.
type session struct {
	mu      sync.Mutex // guards everything below
	begun   []byte     // the client's initialize request, once it was answered
	version string     // the agreed version of the protocol
	ready   []byte     // the client's notifications/initialized

	replayID json.RawMessage // id of the initialize request to this host; nil if no answer is due
	answer   chan []byte     // has room for that answer
}

// note records an initialize request and its answer.
func (s *session) note(request, answer []byte) {
	version, err := agreed(answer)
	if err != nil {
		return // the client gets the refusal, and may try again
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

// initialized returns the client's notifications/initialized, or nil.
func (s *session) initialized() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// replay returns the request that begins the session at a further host, if there is a
// session.
func (s *session) replay() (line []byte, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun == nil {
		return nil, false
	}
	// The client cannot have chosen this id.
	s.replayID = json.RawMessage(`"relay-` + rand.Text() + `"`)
	s.answer = make(chan []byte, 1)
	return with(s.begun, "id", s.replayID), true
}

// takes reports whether an answer is for the replay and not for the client.
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

// replayed waits until the host has begun the session with the same version.
func (s *session) replayed(gone <-chan struct{}) error {
	timer := time.NewTimer(maxWelcome)
	defer timer.Stop()
	select {
	case <-gone:
		return ErrGone
	case <-timer.C:
		return fmt.Errorf("relay MCP: the next host did not answer within %s", maxWelcome)
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

// agreed returns the revision in the answer to an initialize request.
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
