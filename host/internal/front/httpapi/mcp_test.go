package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// TestRevokedTokenEndsStreams takes a token away whose client listens.
func TestRevokedTokenEndsStreams(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{MCP: true, Configure: func(s *httpapi.Server) { s.SetKeepAlive(time.Millisecond) }})
	send := func(method, session, body string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, h.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{
			"Authorization": {"Bearer " + h.Agent}, "Content-Type": {"application/json"},
			"Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {session},
		}
		if session == "" {
			request.Header.Del("Mcp-Session-Id")
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	begun := send("POST", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	stream := send("GET", begun.Header.Get("Mcp-Session-Id"), "")
	if stream.StatusCode != http.StatusOK {
		t.Fatalf("GET /mcp = %s", stream.Status)
	}
	if err := h.Tokens.Replace(nil); err != nil {
		t.Fatal(err)
	}
	// A stream that does not end would block the test until its timeout.
	for buffer := make([]byte, 1<<10); ; {
		if _, err := stream.Body.Read(buffer); err != nil {
			break
		}
	}
	if got := send("POST", "", `{"jsonrpc":"2.0","id":2,"method":"ping"}`); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("after that, a request = %s", got.Status)
	}
}

// TestNoMCPOnTheControlSocket asks for it there, where every process of the
// account is the agent. The control is the network.
func TestNoMCPOnTheControlSocket(t *testing.T) {
	h := httpapitest.Start(t, httpapitest.Options{MCP: true})
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, method := range []string{"POST", "GET", "DELETE"} {
		askControl(t, h, "", method, "/mcp", list).problem(t, http.StatusNotFound, "toolhost mcp")
	}
	got := ask(t, h, h.Agent, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Accept: application/json, text/event-stream")
	if got.status == http.StatusNotFound {
		t.Errorf("control: on the network it is %d %s", got.status, got.body)
	}
}
