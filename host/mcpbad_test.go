package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestBadRequestsOverHTTP sends invalid requests, and checks that each answer says what is
// wrong and that the next valid request is served.
func TestBadRequestsOverHTTP(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+fsBlock))
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	header := func(pairs ...string) http.Header {
		header := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			header[pairs[i]] = []string{pairs[i+1]}
		}
		return header
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"%s",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	stateless := header("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
	for _, tt := range []struct {
		name, method, token string
		header              http.Header
		body                string
		status              int
		want                string
	}{
		{"no token", "POST", "", nil, ping, 401, "th_"},
		{"the approver's key", "POST", "approver.key", nil, ping, 401, "is not valid"},
		{"the name of another host", "POST", "", header("Host", "evil.example"), ping, 403, "not a name of this host"},
		{"another origin", "POST", "", header("Origin", "http://evil.example"), ping, 403, "origin"},
		{"another site", "POST", "", header("Sec-Fetch-Site", "cross-site"), ping, 403, "origin"},
		{"no JSON", "POST", "agent", nil, `{"jsonrpc":`, 400, "not JSON, see byte 11"},
		{"nothing", "POST", "agent", nil, ``, 400, "not JSON"},
		{"NUL", "POST", "agent", nil, "\x00", 400, "not JSON"},
		{"two messages", "POST", "agent", nil, ping + ping, 400, "not JSON"},
		{"a batch", "POST", "agent", nil, "[" + ping + "]", 400, "one message at a time"},
		{"no JSON-RPC", "POST", "agent", nil, `{"a":1}`, 400, ""},
		{"another JSON-RPC", "POST", "agent", nil, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, 400, ""},
		{"an endless message", "POST", "agent", nil, `"` + strings.Repeat("x", 9<<20) + `"`, 413, "longer than 8388608 bytes"},
		{"not called JSON", "POST", "agent", header("Content-Type", "text/plain"), ping, 415, "application/json"},
		{"an answer that cannot be a stream", "POST", "agent", header("Accept", "text/html"), ping, 400, "text/event-stream"},
		{"no method of it", "PUT", "agent", nil, ping, 405, "POST"},
		{"a stream without a session", "GET", "agent", nil, "", 400, "Mcp-Session-Id"},
		{"a session that is none", "POST", "agent", header("Mcp-Session-Id", "mcp_x"), ping, 404, "no such session"},
		{"the end of one that is none", "DELETE", "agent", header("Mcp-Session-Id", "mcp_x"), "", 404, "no such session"},
		{"the end of no session", "DELETE", "agent", nil, "", 400, "Mcp-Session-Id"},
		{"a stream of a revision that has none", "GET", "agent", header("Mcp-Protocol-Version", "2026-07-28"), "", 405, ""},
		{"a revision from before", "POST", "agent", header("Mcp-Protocol-Version", "1999-01-01"), ping, 400, "2025-11-25"},
		{"a revision to come", "POST", "agent", header("Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list"), fmt.Sprintf(list, "2099-01-01"), 400, "2026-07-28"},
		{"a revision that is none", "POST", "agent", header("Mcp-Protocol-Version", "zzz", "Mcp-Method", "tools/list"), fmt.Sprintf(list, "zzz"), 400, "2026-07-28"},
		{"another revision in the message than in the header", "POST", "agent", stateless, fmt.Sprintf(list, "2025-11-25"), 400, "does not match"},
		{"no revision in the header", "POST", "agent", nil, fmt.Sprintf(list, "2026-07-28"), 400, "header"},
		{"another method in the header", "POST", "agent", header("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "ping"), fmt.Sprintf(list, "2026-07-28"), 400, "Mcp-Method"},
		{"a method that is not offered", "POST", "agent", header("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "prompts/list"), strings.Replace(fmt.Sprintf(list, "2026-07-28"), "tools/list", "prompts/list", 1), 404, "-32601"},
		{"a method that is none", "POST", "agent", header("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/eat"), strings.Replace(fmt.Sprintf(list, "2026-07-28"), "tools/list", "tools/eat", 1), 404, "-32601"},
		{"a call before a session is initialized", "POST", "agent", nil, callOf(1, "read_file", `{"path":"hello.txt"}`), 400, "send initialize first"},
		{"a list before a session is initialized", "POST", "agent", nil, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 400, `"code":-32600`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			token := tt.token
			if token != "" {
				name := map[string]string{"agent": "agent.token"}[token]
				if name == "" {
					name = token
				}
				token = strings.TrimSpace(readFile(t, filepath.Join(h.stateDir, name)))
			}
			c := rawClient{h: h, token: token, header: tt.header}
			if status, text := c.ask(t, tt.method, tt.body); status != tt.status || !strings.Contains(text, tt.want) {
				t.Errorf("the answer is %d %s, want %d with %q", status, text, tt.status, tt.want)
			}
			good := rawClient{h: h, token: h.token, header: stateless}
			if status, text := good.ask(t, "POST", fmt.Sprintf(list, "2026-07-28")); status != 200 || !strings.Contains(text, "read_file") {
				t.Errorf("after it, tools/list = %d %s", status, text)
			}
		})
	}
}

// TestSessionsAreTheirCredentials has one user send a message in another user's session, and
// end it. The control uses the user's own session.
func TestSessionsAreTheirCredentials(t *testing.T) {
	t.Parallel()
	bob, bobs := agentToken(t, "bob", "bob")
	other, others := agentToken(t, "other", "")
	h := serve(t, writeConfig(t, listening+fsBlock+"auth {\n"+bob+other+"}\n"))
	c := rawClient{h: h, token: h.token}
	c.initialize(t)
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for _, token := range []string{bobs, others} {
		foe := rawClient{h: h, token: token, session: c.session}
		for _, method := range []string{"POST", "GET", "DELETE"} {
			if status, text := foe.ask(t, method, list); status != http.StatusNotFound {
				t.Errorf("%s in somebody else's session = %d %s, want 404", method, status, text)
			}
		}
	}
	if status, text := c.ask(t, "POST", list); status != http.StatusOK || !strings.Contains(text, "read_file") {
		t.Errorf("control: tools/list in the session = %d %s", status, text)
	}
	if status, _ := c.ask(t, "DELETE", ""); status != http.StatusNoContent {
		t.Errorf("control: the end of the session = %d", status)
	}
	if status, _ := c.ask(t, "POST", list); status != http.StatusNotFound {
		t.Errorf("after its end, tools/list in the session = %d, want 404", status)
	}
}

// TestAnswersOfOthers answers the form of one session from another session of the same user.
// The control is the same answer in the right session.
func TestAnswersOfOthers(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+writing+elicitation))
	asked, foe := rawClient{h: h, token: askers}, rawClient{h: h, token: askers}
	asked.initialize(t)
	foe.initialize(t)
	next := messages(t, asked.send(t, "POST", callOf(2, "write_file", `{"path":"a.txt","content":"hello\n"}`)).Body)
	question := next()
	if question.Method != "elicitation/create" {
		t.Fatalf("the host says %+v, want that it asks", question)
	}
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"decision":"approve"}}}`, question.ID)
	if status, text := foe.ask(t, "POST", answer); status != http.StatusAccepted {
		t.Errorf("the answer of another session = %d %s", status, text)
	}
	// The next answer in the other session shows that the host has processed the first
	// message.
	if status, _ := foe.ask(t, "POST", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`); status != http.StatusOK {
		t.Fatalf("tools/list = %d", status)
	}
	h.open(t, 1)
	if got := h.file("a.txt"); got != "" {
		t.Fatalf("the answer of another session let the call run: the file holds %q", got)
	}
	if status, text := asked.ask(t, "POST", answer); status != http.StatusAccepted {
		t.Errorf("control: the answer = %d %s", status, text)
	}
	if end := next(); end.Result == nil || h.file("a.txt") != "hello\n" {
		t.Errorf("control: the call came to %+v, and the file holds %q", end, h.file("a.txt"))
	}
}

// TestClientsThatVanish drops the connection during a call. In 2026-07-28, that cancels the
// call. In a session, the call continues, and its approval stays open until it is canceled.
func TestClientsThatVanish(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+writing+probeBlock("")))
	inside := func(want string) func() bool {
		s := connectHTTP(t, h, h.token, revisions[0], "test", nil)
		return func() bool { return s.must(t, "probe_inside", nil) == want }
	}
	one, none := inside("1"), inside("0")
	for _, tool := range []string{"probe_wait", "write_file"} {
		arguments := map[string]string{"probe_wait": "{}", "write_file": `{"path":"a.txt","content":"x"}`}[tool]
		for _, revision := range []string{"2026-07-28", "2025-11-25"} {
			t.Run(tool+" "+revision, func(t *testing.T) {
				c, body := &rawClient{h: h, token: h.token}, callOf(2, tool, arguments)
				if revision == "2026-07-28" {
					c.header, body = statelessCall(tool, arguments)
				} else {
					c.initialize(t)
				}
				ctx, vanish := context.WithCancel(t.Context())
				defer vanish()
				request, err := c.request(ctx, "POST", body)
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan struct{})
				go func() { // ends with vanish
					defer close(ended)
					if response, err := http.DefaultClient.Do(request); err == nil {
						_, _ = response.Body.Read(make([]byte, 1))
						_ = response.Body.Close()
					}
				}()
				if tool == "probe_wait" {
					eventually(t, "the call is inside", one)
				} else {
					h.open(t, 1)
				}
				vanish()
				<-ended
				if revision == "2026-07-28" {
					if tool == "probe_wait" {
						eventually(t, "the call has left the plugin", none)
					} else {
						h.open(t, 0)
					}
					return
				}
				id := h.left(t, tool)
				if tool == "probe_wait" && !one() {
					t.Error("the call has left the plugin")
				} else if tool == "write_file" {
					h.open(t, 1)
				}
				h.must(t, http.StatusOK, "POST", "/v1/calls/"+id+"/cancel", h.token, "")
				if tool == "probe_wait" {
					eventually(t, "the call has left the plugin", none)
				} else {
					h.open(t, 0)
				}
			})
		}
	}
}

// TestManyIdleSessions begins more sessions than a credential may have: those that were idle
// for longest end, and the host stays small and keeps serving.
func TestManyIdleSessions(t *testing.T) {
	t.Parallel()
	const most = 1024
	h := serve(t, writeConfig(t, listening+fsBlock))
	begun := make([]rawClient, most+10)
	for i := range begun {
		begun[i] = rawClient{h: h, token: h.token}
		begun[i].initialize(t)
	}
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for i, want := range map[int]int{0: 404, 9: 404, 10: 200, most: 200, most + 9: 200} {
		if status, text := begun[i].ask(t, "POST", list); status != want {
			t.Errorf("tools/list in session %d = %d %s, want %d", i, status, text, want)
		}
	}
	if got := residentMiB(t, h.cmd.Process.Pid); got > 256 {
		t.Errorf("with %d idle sessions the host has %d MiB in memory", most, got)
	}
}

// TestManyStreams opens more streams than a credential may have: the host reports that, its
// calls continue, and others are served.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	const most = 256
	bob, bobs := agentToken(t, "bob", "bob")
	h := serve(t, writeConfig(t, listening+fsBlock+"auth {\n"+bob+"}\n"))
	var last rawClient
	for i := range most + 1 {
		last = rawClient{h: h, token: h.token}
		last.initialize(t)
		want := http.StatusOK
		if i == most {
			want = http.StatusTooManyRequests
		}
		if stream := last.send(t, "GET", ""); stream.StatusCode != want { // open until the test ends
			t.Fatalf("stream %d = %s, want %d", i, stream.Status, want)
		}
	}
	if status, text := last.ask(t, "POST", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); status != http.StatusOK {
		t.Errorf("without a stream of its own, tools/list = %d %s", status, text)
	}
	other := rawClient{h: h, token: bobs}
	other.initialize(t)
	if stream := other.send(t, "GET", ""); stream.StatusCode != http.StatusOK {
		t.Errorf("another credential's stream = %s", stream.Status)
	}
}

// residentMiB returns the resident memory of a process.
func residentMiB(t *testing.T, pid int) int {
	t.Helper()
	for line := range strings.Lines(readFile(t, fmt.Sprintf("/proc/%d/status", pid))) {
		if kib, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.Fields(kib)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n / 1024
		}
	}
	t.Fatal("the process says nothing of its memory")
	return 0
}

// TestHalfOpenConnections leaves many requests incomplete: the host still serves others, and
// stops on request.
func TestHalfOpenConnections(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+fsBlock))
	address := strings.TrimPrefix(h.url, "http://")
	for i := range 200 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		half := []string{
			"POST /mcp HTTP/1.1\r\nHost: " + address + "\r\n",
			"POST /mcp HTTP/1.1\r\nHost: " + address + "\r\nAuthorization: Bearer " + h.token +
				"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"jsonrpc\"",
		}[i%2]
		if _, err := conn.Write([]byte(half)); err != nil {
			t.Fatal(err)
		}
	}
	for _, revision := range revisions {
		s := connectHTTP(t, h, h.token, revision, "test", nil)
		if got := s.must(t, "read_file", map[string]any{"path": "hello.txt"}); got != "hello, world\n" {
			t.Errorf("read_file = %q", got)
		}
		_ = s.Close()
	}
	h.stop()
	if said := h.said(); strings.Contains(said, "panic") {
		t.Errorf("the host says %s", said)
	}
	if _, err := os.Stat(filepath.Join(h.stateDir, "control.sock")); err == nil {
		t.Error("the host has left its control socket behind")
	}
}
