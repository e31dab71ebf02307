package mcpserver_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// recorder records the answers to a client's requests.
type recorder struct {
	next http.RoundTripper

	mu   sync.Mutex // guards said
	said strings.Builder
}

// RoundTrip implements [http.RoundTripper].
func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil || request.Method != http.MethodPost {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // already read
	response.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said.Write(body)
	return response, err
}

// TestInputRequiredHasNoNull checks the bytes of an answer that asks the client for input:
// null is not a list of content.
func TestInputRequiredHasNoNull(t *testing.T) {
	t.Parallel()
	h := begin(t, nil)
	wire := &recorder{next: bearer(h.Asker)}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, byHand(nil)).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: h.URL + "/mcp", HTTPClient: &http.Client{Transport: wire}},
		&mcp.ClientSessionOptions{ProtocolVersion: stateless})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "write", Arguments: map[string]any{"text": "a"}})
	if err != nil {
		t.Fatal(err)
	}
	wire.mu.Lock()
	defer wire.mu.Unlock()
	said := wire.said.String()
	if !strings.Contains(said, `"resultType":"input_required"`) || strings.Contains(said, "null") {
		t.Errorf("the host has said %s", said)
	}
}
