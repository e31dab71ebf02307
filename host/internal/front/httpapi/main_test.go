package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

func TestMain(m *testing.M) {
	if program := programs()[os.Getenv(programVar)]; program != nil {
		os.Exit(program(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// answer is the host's answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request to the network listener and returns the answer. Headers
// are "Name: value".
func ask(t *testing.T, h *httpapitest.Host, token, method, path, body string, headers ...string) answer {
	t.Helper()
	return send(t, http.DefaultTransport, newRequest(t, h.URL, token, method, path, body, headers...))
}

// askControl does the same over the control socket, as this very process.
func askControl(t *testing.T, h *httpapitest.Host, token, method, path, body string, headers ...string) answer {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return auth.DialControl(ctx, h.StateDir)
	}}
	defer transport.CloseIdleConnections()
	return send(t, transport, newRequest(t, "http://localhost", token, method, path, body, headers...))
}

func newRequest(t *testing.T, url, token, method, path, body string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	r.Close = true // leaves no idle connection behind
	return r
}

func send(t *testing.T, transport http.RoundTripper, r *http.Request) answer {
	t.Helper()
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := answer{response.StatusCode, response.Header, body}
	conforms(t, r, got)
	return got
}

// into reads the body of an answer with the expected status.
func (a answer) into(t *testing.T, status int, v any) {
	t.Helper()
	if a.status != status {
		t.Fatalf("status = %d, want %d: %s", a.status, status, a.body)
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

// problem checks that an answer is a whole problem with a status, and that it
// says something.
func (a answer) problem(t *testing.T, status int, says string) {
	t.Helper()
	var p httpapi.Problem
	a.into(t, status, &p)
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type = %q, want application/problem+json", got)
	}
	if p.Status != status || p.Title == "" || !strings.HasPrefix(p.Type, "urn:toolhost:problem:") || p.Detail == "" {
		t.Errorf("the problem is not whole: %s", a.body)
	}
	if !bytes.Contains(a.body, []byte(says)) {
		t.Errorf("the problem is %s, want %q", a.body, says)
	}
}

// outcome is the part of a call's outcome that tests look at.
type outcome struct {
	Status     string `json:"status"`
	ToolCallID string `json:"tool_call_id"`
	ApprovalID string `json:"approval_id"`
	Result     struct {
		Content string `json:"content"`
	} `json:"result"`
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Hint    string `json:"hint"`
	} `json:"error"`
	Reason string `json:"reason"`
}
