package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
)

// writeWithin bounds how long the client may take to take what follows.
func (s *Server) writeWithin(w http.ResponseWriter) {
	// A recorder in a test knows no deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.timing.write))
}

// write answers with a value as JSON.
func (s *Server) write(w http.ResponseWriter, status int, v any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	s.writeWithin(w)
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // nobody is left to tell
	return nil
}

const (
	// largeResult is the size from which results take turns: each is in memory many
	// times while it is encoded.
	largeResult = 64 << 10
	// maxEncoding is how many large results are encoded at a time.
	maxEncoding = 2
)

// writeResult is write for the outcome of a call that has ended. Only encoding takes
// turns, not writing: a client that does not read keeps no other waiting.
func (s *Server) writeResult(w http.ResponseWriter, outcome operation.Outcome) error {
	size := len(outcome.Result.Structured)
	for _, part := range outcome.Result.Content {
		size += len(part.Data)
	}
	if size <= largeResult {
		return s.write(w, http.StatusOK, outcome)
	}
	text, err := s.encodeInTurn(outcome)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	s.writeWithin(w)
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write(text); err == nil {
		_, _ = w.Write([]byte("\n")) // nobody is left to tell
	}
	return nil
}

func (s *Server) encodeInTurn(outcome operation.Outcome) ([]byte, error) {
	s.encoding <- struct{}{}
	defer func() { <-s.encoding }()
	return outcome.MarshalJSON()
}

// list returns a list that is [] in JSON if it is empty.
func list[T any](of []T) []T {
	if of == nil {
		return []T{}
	}
	return of
}
