// Package embedtest is an embedding server for tests. It implements the APIs of
// Ollama and OpenAI on a loopback address and knows the meaning of a few words.
package embedtest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Server is a running server. Its methods are safe for concurrent use.
type Server struct {
	URL string

	mu       sync.Mutex
	respond  func(w http.ResponseWriter, texts []string) bool
	requests []Request
	extra    int
}

// Request is a request that the server received.
type Request struct {
	Path, Model, Authorization string
	Texts                      []string
}

// topics are sets of synonyms. The index of a set is its dimension in vectors.
var topics = [][]string{
	{"car", "automobile", "vehicle", "sedan"},
	{"doctor", "physician", "surgeon"},
	{"happy", "glad", "cheerful"},
	{"tea", "beverage", "drink"},
}

// Start starts a server, which stops at the end of the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	tb.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Respond replaces the server's responses: f reports whether it has responded
// itself. A nil f restores the usual responses.
func (s *Server) Respond(f func(w http.ResponseWriter, texts []string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.respond = f
}

// Widen adds dimensions to all further vectors.
func (s *Server) Widen(dimensions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extra += dimensions
}

// Requests returns the requests received so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&asked) != nil {
		http.Error(w, "not a request for embeddings", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, Request{r.URL.Path, asked.Model, r.Header.Get("Authorization"), asked.Input})
	respond, extra := s.respond, s.extra
	s.mu.Unlock()
	if respond != nil && respond(w, asked.Input) {
		return
	}
	switch r.URL.Path {
	case "/api/embed":
		vectors := [][]float32{}
		for _, text := range asked.Input {
			vectors = append(vectors, Vector(text, extra))
		}
		reply(w, map[string]any{"model": asked.Model, "embeddings": vectors})
	case "/v1/embeddings":
		var data []any
		for i, text := range slices.Backward(asked.Input) { // in any order
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": Vector(text, extra)})
		}
		reply(w, map[string]any{"object": "list", "data": data})
	default:
		http.NotFound(w, r)
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may have given up
}

// Vector returns the server's vector of a text: its share of each topic.
func Vector(text string, extra int) []float32 {
	v := make([]float32, len(topics)+1+extra)
	v[len(topics)] = 0.1
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		for i, words := range topics {
			for _, w := range words {
				if strings.Trim(word, ".,?!") == w {
					v[i]++
				}
			}
		}
	}
	return v
}
