package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
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

// list returns a list that is [] in JSON if it is empty.
func list[T any](of []T) []T {
	if of == nil {
		return []T{}
	}
	return of
}
