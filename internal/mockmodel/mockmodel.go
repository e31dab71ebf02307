// Package mockmodel plays the model for an agent's client in tests. It serves Anthropic's
// messages API and OpenAI's responses API on a loopback address, has the client make the tool
// calls that a test asks for, and returns what the client sends back. It never contacts a real
// model.
package mockmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Model is a model with one conversation. [Model.Close] ends it.
type Model struct {
	server  *httptest.Server
	calls   chan call
	results chan string
	ended   chan struct{} // closed by End
	end     sync.Once

	mu      sync.Mutex // guards the fields below
	first   []byte     // the first request with tools
	current call       // the last call that the client received
	made    int
	files   int  // as Files returns it
	seen    bool // the client has sent the result of current
}

// call is one tool call.
type call struct {
	id, namespace, name string
	args                json.RawMessage
}

// New starts a model.
func New() *Model {
	m := &Model{calls: make(chan call), results: make(chan string), ended: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", countTokens)
	mux.HandleFunc("POST /v1/responses", m.responses)
	mux.HandleFunc("GET /v1/models", models)
	m.server = httptest.NewServer(mux)
	return m
}

// URL returns the server's address, without a path.
func (m *Model) URL() string { return m.server.URL }

// Call has the client call a tool and returns the result that the client sends the model. The
// namespace is that of OpenAI's tools; it is "" for Anthropic's.
func (m *Model) Call(ctx context.Context, namespace, name string, args any) (string, error) {
	encoded, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	m.made++
	next := call{id: fmt.Sprintf("call_%04d", m.made), namespace: namespace, name: name, args: encoded}
	m.mu.Unlock()
	select {
	case m.calls <- next:
	case <-ctx.Done():
		return "", errors.New("the client asks the model for nothing")
	}
	select {
	case text := <-m.results:
		return text, nil
	case <-ctx.Done():
		return "", fmt.Errorf("the client sends no result of %s", name)
	}
}

// First returns the first request that offered tools. It contains the instructions, the tools
// and the user's message.
func (m *Model) First() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.first
}

// Files returns the size of the images and documents in the last result, as they were sent.
func (m *Model) Files() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files
}

// End makes the model answer that it is done, which ends the client.
func (m *Model) End() { m.end.Do(func() { close(m.ended) }) }

// Close ends the conversation and the server.
func (m *Model) Close() {
	m.End()
	m.server.CloseClientConnections()
	m.server.Close()
}

// next delivers the result in a request and waits for the next call. It returns false once the
// conversation has ended. A request without the result of the current call, such as a retry,
// gets the same call again.
func (m *Model) next(r *http.Request, body []byte, result func(id string) (json.RawMessage, bool)) (call, bool) {
	m.mu.Lock()
	if m.first == nil {
		m.first = body
	}
	current, seen := m.current, m.seen
	m.mu.Unlock()
	if current.id != "" && !seen {
		content, found := result(current.id)
		if !found {
			return current, true
		}
		text, files := contentOf(content)
		m.mu.Lock()
		m.files = files
		m.mu.Unlock()
		select {
		case m.results <- text:
		case <-r.Context().Done():
			return call{}, false
		}
		m.mu.Lock()
		m.seen = true
		m.mu.Unlock()
	}
	select {
	case next := <-m.calls:
		m.mu.Lock()
		m.current, m.seen = next, false
		m.mu.Unlock()
		return next, true
	case <-m.ended:
	case <-r.Context().Done():
	}
	return call{}, false
}

// read decodes the body of a request into v and returns the body.
func read(w http.ResponseWriter, r *http.Request, v any) ([]byte, bool) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, v)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return body, err == nil
}

// stream writes server-sent events.
type stream struct{ w http.ResponseWriter }

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	return stream{w}
}

// send writes an event. It adds the event's name to the data as its type.
func (s stream) send(name string, data map[string]any) {
	data["type"] = name
	text, _ := json.Marshal(data) // strings and numbers always encode
	fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, text)
}

// contentOf joins the texts of a result, which is a string or a list of parts. It writes a part
// of another type as that type in brackets, and returns the size of the data of all such parts.
func contentOf(content json.RawMessage) (text string, files int) {
	if json.Unmarshal(content, &text) == nil {
		return text, 0
	}
	var parts []struct {
		Type   string `json:"type"`
		Text   string `json:"text"`
		Source struct {
			Data string `json:"data"`
		} `json:"source"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return string(content), 0
	}
	texts := make([]string, 0, len(parts))
	for _, part := range parts {
		if part.Text == "" {
			part.Text = "[" + part.Type + "]"
		}
		texts = append(texts, part.Text)
		files += len(part.Source.Data)
	}
	return strings.Join(texts, "\n"), files
}
