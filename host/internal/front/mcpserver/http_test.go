package mcpserver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/front/httpapi/httpapitest"
)

// FuzzServeHTTP sends arbitrary requests. The host must answer each one and keep serving.
func FuzzServeHTTP(f *testing.F) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for _, seed := range []struct{ method, version, session, name, body string }{
		{"POST", "", "", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`},
		{"POST", "2025-11-25", "mcp_x", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{"POST", "2026-07-28", "", "tools/list", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`},
		{"POST", "2026-07-28", "", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{},` + meta + `}}`},
		{"POST", "2026-07-28", "", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","requestState":"x","inputResponses":{"approval":{"action":"accept"}},` + meta + `}}`},
		{"POST", "2026-07-28", "", "server/discover", `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`},
		{"POST", "2026-07-28", "", "subscriptions/listen", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`},
		{"POST", "", "", "", `{"jsonrpc":"2.0","id":{"a":1},"method":"tools/call"}`},
		{"POST", "", "", "", `{"jsonrpc":"2.0","method":"tools/call","params":null}`},
		{"POST", "", "", "", `[[[[[`},
		{"GET", "2025-11-25", "mcp_x", "", ``},
		{"DELETE", "", "mcp_x", "", ``},
	} {
		f.Add(seed.method, seed.version, seed.session, seed.name, []byte(seed.body))
	}
	h := httpapitest.Start(f, httpapitest.Options{MCP: true, Patience: time.Millisecond})
	caller := auth.Caller{User: httpapitest.Ann, Token: "agent", Roles: auth.Agent}
	f.Fuzz(func(t *testing.T, method, version, session, name string, body []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // the host holds some requests open
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, method, h.URL+"/mcp", strings.NewReader(string(body)))
		if err != nil {
			return // not a method that a client can send
		}
		request.Header = http.Header{
			"Authorization": {"Bearer x"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {version}, "Mcp-Session-Id": {session}, "Mcp-Method": {name},
		}
		for header, values := range request.Header {
			if values[0] == "" {
				request.Header.Del(header)
			}
		}
		answer := httptest.NewRecorder()
		h.MCP.ServeHTTP(answer, request, caller, nil)
		if answer.Code < 200 || answer.Code > 599 {
			t.Errorf("%s %q = %d", method, body, answer.Code)
		}
	})
}
