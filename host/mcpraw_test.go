package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// rawClient uses MCP over HTTP directly, as no well-behaved client would.
type rawClient struct {
	h              *host
	token, session string
	header         http.Header // added to every request
}

// request returns a request with a body.
func (c *rawClient) request(ctx context.Context, method, body string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.h.url+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{
		"Authorization": {"Bearer " + c.token}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"},
	}
	if c.session != "" {
		request.Header.Set("Mcp-Session-Id", c.session)
	}
	for name, values := range c.header {
		request.Header[name] = values
		if name == "Host" {
			request.Host = values[0]
		}
	}
	return request, nil
}

// send sends a body and returns the answer, which the end of the test closes.
func (c *rawClient) send(t *testing.T, method, body string) *http.Response {
	t.Helper()
	request, err := c.request(t.Context(), method, body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("%s /mcp: %v", method, err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// ask sends a body and returns the status and the whole answer.
func (c *rawClient) ask(t *testing.T, method, body string) (status int, text string) {
	t.Helper()
	response := c.send(t, method, body)
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s /mcp: %v", method, err)
	}
	return response.StatusCode, string(answer)
}

// initialize begins a session of revision 2025-11-25, as a client that can show forms.
func (c *rawClient) initialize(t *testing.T) {
	t.Helper()
	response := c.send(t, "POST", fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":%q,"version":"1"}}}`, testClient))
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("initialize = %s, %v", response.Status, err)
	}
	c.session = response.Header.Get("Mcp-Session-Id")
	if status, text := c.ask(t, "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != http.StatusAccepted {
		t.Fatalf("notifications/initialized = %d %s", status, text)
	}
}

// rawMessage is a message from the host.
type rawMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// messages reads the messages of an event stream, until the end of the test.
func messages(t *testing.T, stream io.Reader) func() rawMessage {
	t.Helper()
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	return func() rawMessage {
		t.Helper()
		for lines.Scan() {
			if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
				var m rawMessage
				if err := json.Unmarshal(data, &m); err != nil {
					t.Fatalf("the host sends %s: %v", data, err)
				}
				return m
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return rawMessage{}
	}
}

// callOf returns a tools/call request.
func callOf(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}

// statelessCall returns a tools/call request of revision 2026-07-28 and its headers.
func statelessCall(tool, arguments string) (http.Header, string) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	return http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool}},
		fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, tool, arguments, meta)
}
