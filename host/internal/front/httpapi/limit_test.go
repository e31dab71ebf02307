package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// withoutToken are the beginnings of requests that hold a connection open without a token:
// nothing, half a header, a missing body, a wrong token.
func withoutToken() []string {
	wrong, _ := auth.NewToken()
	return []string{
		"",
		"POST /v1/calls HTTP/1.1\r\nHost: 127.0",
		"POST /v1/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"GET /v1/tools HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + wrong + "\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n",
	}
}

// Connections without a token take no place from one with a token. The control
// has no bound for them: the call waits until one of them is closed.
func TestConnectionsWithoutTokenDelayNoCall(t *testing.T) {
	for _, tt := range []struct {
		name                       string
		all, unauthenticated, open int
		want                       error
	}{
		{"bounded", httpapi.MaxConnections, httpapi.MaxUnauthenticated, 2500, nil},
		{"as many as there are places", 8, 8, 20, nil},
		{"control", 8, 0, 20, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := httpapitest.Start(t, httpapitest.Options{Configure: func(s *httpapi.Server) {
				s.SetConnections(tt.all, tt.unauthenticated, time.Hour)
			}})
			for i := range tt.open {
				dial(t, h, withoutToken()[i%5])
			}
			patience := time.Minute
			if tt.want != nil {
				patience = 100 * time.Millisecond // however long, the call would not get through
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			request := newRequest(t, h.URL, h.Agent, "POST", "/v1/calls", `{"tool":"look"}`).WithContext(ctx)
			response, err := http.DefaultTransport.RoundTrip(request)
			if !errors.Is(err, tt.want) {
				t.Fatalf("a call beside %d connections without a token: %v, want %v", tt.open, err, tt.want)
			}
			if err == nil {
				response.Body.Close()
				if response.StatusCode != http.StatusOK {
					t.Errorf("status = %d, want 200", response.StatusCode)
				}
			}
		})
	}
}

// A connection that has sent a token is not closed in favor of others, even between two
// requests. Among the others, the oldest is closed.
func TestConnectionsWithTokenStay(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{Configure: func(s *httpapi.Server) { s.SetConnections(8, 2, time.Hour) }})
	request := fmt.Sprintf("GET /v1/tools/look HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", h.Agent)
	client := dial(t, h, request)
	answers := bufio.NewReader(client)
	wantAnswer(t, answers, http.StatusOK)
	first := dial(t, h, "")
	for range 10 {
		dial(t, h, "")
	}
	if _, err := first.Read(make([]byte, 1)); err == nil { // blocks until it is closed
		t.Error("the oldest connection without a token was sent something")
	}
	if _, err := io.WriteString(client, request); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, answers, http.StatusOK)
}

// A missing body does not hold a connection without a token open.
func TestBodyThatDoesNotComeWithoutToken(t *testing.T) {
	for _, begin := range withoutToken() {
		if !strings.Contains(begin, "Content-Length") {
			continue
		}
		h := httpapitest.Start(t, httpapitest.Options{Configure: func(s *httpapi.Server) {
			s.SetConnections(8, 8, 500*time.Millisecond)
		}})
		if _, err := io.ReadAll(dial(t, h, begin)); err != nil {
			t.Errorf("%s: %v, want an answer and the end", begin, err)
		}
	}
}

// dial connects to a host, and sends the beginning of a request.
func dial(t *testing.T, h *httpapitest.Host, begin string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, begin); err != nil {
		t.Fatal(err)
	}
	return conn
}

func wantAnswer(t *testing.T, answers *bufio.Reader, status int) {
	t.Helper()
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != status {
		t.Errorf("status = %d, want %d", response.StatusCode, status)
	}
}
