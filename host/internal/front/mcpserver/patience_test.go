package mcpserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// pipes is a listener for in-process connections, whose deadlines use the clock of a bubble.
type pipes chan net.Conn

// Accept implements [net.Listener].
func (p pipes) Accept() (net.Conn, error) {
	conn, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

// Close implements [net.Listener].
func (p pipes) Close() error { return nil }

// Addr implements [net.Listener].
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// dialed serves MCP in a bubble over one connection and returns the client's side. served
// receives when each request has been served. end must be called before the bubble ends.
func dialed(t *testing.T) (conn net.Conn, served <-chan time.Time, end func()) {
	t.Helper()
	tools, err := catalog.New(catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Catalog: tools, Version: "test", Logger: hclog.NewNullLogger()})
	done := make(chan time.Time, 1)
	server := &http.Server{
		ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.ServeHTTP(w, r, auth.Caller{User: "ann", Roles: auth.Agent}, nil)
			done <- time.Now()
		}),
	}
	conn, other := net.Pipe()
	// The test fails if anything is left then.
	if err := conn.SetDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	listener := make(pipes, 1)
	listener <- other
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }() // ends with end, which waits for it
	return conn, done, func() {
		_ = conn.Close()
		close(listener)
		<-ended
		_ = server.Close()
		_ = s.Close()
	}
}

// post sends the head of a request and the beginning of its body.
func post(t *testing.T, conn net.Conn, body string, length int) {
	t.Helper()
	_, err := fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n"+
		"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", length, body)
	if err != nil {
		t.Fatal(err)
	}
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// TestMessagesThatDoNotArrive sends half of a message. The server must stop waiting for the
// rest at the limit. The control is a message that takes nearly as long.
func TestMessagesThatDoNotArrive(t *testing.T) {
	t.Run("half of one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn, served, end := dialed(t)
			defer end()
			began := time.Now()
			post(t, conn, initialize[:20], len(initialize))
			select {
			case at := <-served:
				if waited := at.Sub(began); waited != maxBodyTime {
					t.Errorf("the host waited for %v, want %v", waited, maxBodyTime)
				}
			case <-time.After(2 * maxBodyTime):
				t.Error("the host still waits for the rest")
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != http.StatusBadRequest {
				t.Errorf("the answer is %+v, %v; want 400", response, err)
			}
		})
	})
	t.Run("control: a slow one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn, _, end := dialed(t)
			defer end()
			post(t, conn, initialize[:20], len(initialize))
			<-time.After(maxBodyTime - time.Second)
			if _, err := io.WriteString(conn, initialize[20:]); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("the answer is %+v, %v; want 200", response, err)
			}
		})
	})
}

// TestAnswersThatAreNotTaken does not read the answer: the host closes the connection. The
// control reads it just in time.
func TestAnswersThatAreNotTaken(t *testing.T) {
	for wait, taken := range map[time.Duration]bool{maxWriteTime - time.Second: true, maxWriteTime + time.Second: false} {
		t.Run(fmt.Sprint("after ", wait), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, _, end := dialed(t)
				defer end()
				post(t, conn, initialize, len(initialize))
				<-time.After(wait)
				line, err := bufio.NewReader(conn).ReadString('\n')
				if got := err == nil; got != taken || got && !strings.Contains(line, "200 OK") {
					t.Errorf("the client reads %q, %v; want an answer: %t", line, err, taken)
				}
			})
		})
	}
}
