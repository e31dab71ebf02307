package main

import (
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearer sends a token with every request.
type bearer string

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// connectHTTP connects a client of a revision to a host over HTTP.
func connectHTTP(t *testing.T, h *host, token, revision, name string, opts *mcp.ClientOptions) *session {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, opts)
	s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: h.url + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)},
	}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatalf("connect over HTTP with revision %s: %v", revision, err)
	}
	t.Cleanup(func() { _ = s.Close() }) // the host may have ended
	return &session{s}
}

// TestMCPOverHTTP lists and calls tools in each revision over HTTP.
func TestMCPOverHTTP(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+fsBlock))
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			s := connectHTTP(t, h, h.token, revision, "test", nil)
			list, err := s.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) == 0 {
				t.Fatalf("tools/list = %v, %v", list, err)
			}
			if got := s.must(t, "read_file", map[string]any{"path": "hello.txt"}); got != "hello, world\n" {
				t.Errorf("read_file(hello.txt) = %q", got)
			}
		})
	}
}
