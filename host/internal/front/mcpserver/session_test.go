package mcpserver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestSessionOfACall checks which session a plugin sees for each way to call. It is never the
// client's name or another client's session.
func TestSessionOfACall(t *testing.T) {
	told := make(chan string, 1)
	h := httpapitest.Start(t, httpapitest.Options{MCP: true, Run: func(_ context.Context, call tool.Call, _ tool.Sink) (tool.Result, error) {
		told <- call.Context.Session
		return tool.TextResult("done"), nil
	}})
	look := func(c *client) string {
		t.Helper()
		if _, err := c.CallTool(c.ctx, &mcp.CallToolParams{Name: "look"}); err != nil {
			t.Fatal(err)
		}
		return <-told
	}
	own, other := connect(t, h, withSession, nil), connect(t, h, withSession, nil)
	if a, b := look(own), look(other); a != own.ID() || b != other.ID() || a == b {
		t.Errorf("two sessions are told as %q and %q", a, b)
	}
	none := connect(t, h, stateless, nil)
	of := look(none)
	if ofLinux := runtime.GOOS == "linux"; auth.SessionEnds(of) != ofLinux || !ofLinux && of != "" {
		t.Errorf("the session of a process is told as %q", of)
	}
	if again := look(connect(t, h, stateless, nil)); again != of {
		t.Errorf("another connection of the same process has the session %q, the first %q", again, of)
	}
	if asker := look(connectAsker(t, h, stateless, nil)); asker == of && of != "" {
		t.Error("two credentials have one session")
	}

	// As a proxy would pass it on: from an unknown process, with another client's session.
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"asker","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/mcp", strings.NewReader(body))
	for name, value := range map[string]string{
		"Authorization": "Bearer x", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": stateless, "Mcp-Method": "tools/call", "Mcp-Name": "look", "Mcp-Session-Id": own.ID(),
	} {
		r.Header.Set(name, value)
	}
	answer := httptest.NewRecorder()
	h.MCP.ServeHTTP(answer, r, auth.Caller{User: httpapitest.Ann, Token: "agent", Roles: auth.Agent}, nil)
	select {
	case got := <-told:
		if got != "" {
			t.Errorf("a process that is not known has the session %q", got)
		}
	default:
		t.Errorf("the call has not run: %s", answer.Body)
	}
}
