package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// realIssuer is the issuer of internal/tools/mcp/issuer.mjs, with the package oidc-provider. It has
// the clients agent and lead, which are in the groups tools and leads.
type realIssuer struct {
	url   string
	in    io.WriteCloser
	lines *bufio.Reader
	cmd   *exec.Cmd
}

func startIssuer(t *testing.T, audience string) *realIssuer {
	t.Helper()
	node, _ := peerProgram(t, "mcp-inspector")
	i := &realIssuer{cmd: exec.Command(node, "issuer.mjs", audience)}
	i.cmd.Dir = "../internal/tools/mcp"
	in, err := i.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := i.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := i.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	i.in, i.lines = in, bufio.NewReader(out)
	t.Cleanup(i.stop)
	i.url = i.line(t)
	return i
}

func (i *realIssuer) line(t *testing.T) string {
	t.Helper()
	line, err := i.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("the issuer: %v; make peers installs what it needs", err)
	}
	return strings.TrimSpace(line)
}

// rotate replaces the issuer's keys.
func (i *realIssuer) rotate(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(i.in, "\n"); err != nil {
		t.Fatal(err)
	}
	i.line(t)
}

func (i *realIssuer) stop() {
	_ = i.in.Close() // ends it
	_ = i.cmd.Wait()
}

// token gets an access token by the client credentials grant.
func (i *realIssuer) token(t *testing.T, client string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.url+"/token", strings.NewReader(url.Values{"grant_type": {"client_credentials"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(client, client+"-secret")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got struct {
		AccessToken string `json:"access_token"` //nolint:tagliatelle // the standard's name
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || got.AccessToken == "" {
		t.Fatalf("the issuer gives no token: %s, %v", answer.Status, err)
	}
	return got.AccessToken
}

// TestIssuer logs clients in at a real issuer: one of MCP, which knows only the address of the host
// and finds the issuer by itself, and one of REST. It works on when the issuer replaces its keys and
// when it is down, and ends when the issuer leaves the configuration.
func TestIssuer(t *testing.T) {
	t.Parallel()
	const audience = "https://tools.example.com"
	issuer := startIssuer(t, audience)
	base := listening + writing + "toolset \"files\" {\n  tools = [\"*_file\"]\n}\ngroup \"tools@corp\" {\n  toolset = \"files\"\n}\n"
	h := serve(t, writeConfig(t, base+fmt.Sprintf("auth {\n  issuer \"corp\" {\n    url      = %q\n    audience = %q\n    roles    = { leads = [\"approver\"], tools = [\"agent\"] }\n  }\n}\n", issuer.url, audience)))

	handler, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{Credentials: &oauthex.ClientCredentials{
		ClientID: "agent", ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: "agent-secret"}, Issuer: issuer.url,
	}})
	if err != nil {
		t.Fatal(err)
	}
	connected, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: h.url + "/mcp", OAuthHandler: handler}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Close()
	s := &session{connected}
	read := func(when string) {
		t.Helper()
		if got := s.must(t, "read_file", map[string]any{"path": "hello.txt"}); got != "hello, world\n" {
			t.Errorf("%s, read_file = %q", when, got)
		}
	}
	read("at first")
	list, err := s.ListTools(t.Context(), nil)
	if err != nil || slices.ContainsFunc(list.Tools, func(listed *mcp.Tool) bool { return listed.Name == "list_directory" }) {
		t.Errorf("the tools of the group tools@corp = %v, %v; want those of files only", list, err)
	}

	agent, lead := issuer.token(t, "agent"), issuer.token(t, "lead")
	h.decideAs(t, agent, lead, "agent@corp", "lead@corp")

	issuer.rotate(t)
	next := issuer.token(t, "agent")
	h.must(t, http.StatusOK, "GET", "/v1/tools/read_file", next, "")
	h.must(t, http.StatusUnauthorized, "GET", "/v1/tools/read_file", agent, "") // its key is gone
	read("with a new key")                                                      // the client logs in again

	issuer.stop()
	h.must(t, http.StatusOK, "GET", "/v1/tools/read_file", next, "")
	read("while the issuer is down")

	h.must(t, http.StatusAccepted, "POST", "/v1/calls", next, `{"tool":"write_file","arguments":{"path":"later.txt","content":"x"}}`, "Prefer", "wait=0")
	h.open(t, 1)
	if err := os.WriteFile(h.config, []byte(settingsFor(base)), 0o600); err != nil {
		t.Fatal(err)
	}
	h.ok(t, "reload")
	h.open(t, 0) // the call that waited has ended
	h.must(t, http.StatusUnauthorized, "GET", "/v1/tools/read_file", next, "")
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": "hello.txt"}}); err == nil {
		t.Error("without the issuer, its client still calls tools")
	}
}

// decideAs has an agent ask for a call, and another user of the issuer, who is an approver, answer.
func (h *host) decideAs(t *testing.T, agent, approver, agentName, approverName string) {
	t.Helper()
	asked := outcomeOf(t, 0, h.must(t, http.StatusAccepted, "POST", "/v1/calls", agent,
		`{"tool":"write_file","arguments":{"path":"new.txt","content":"x"}}`, "Prefer", "wait=0"), nil)
	eventually(t, "the call waits for a person", func() bool {
		status, text, err := h.send("GET", "/v1/calls/"+asked.ToolCallID, agent, "")
		asked = outcomeOf(t, status, text, err)
		return asked.ApprovalID != ""
	})
	h.must(t, http.StatusForbidden, "GET", "/v1/approvals", agent, "")
	h.must(t, http.StatusForbidden, "POST", "/v1/calls", approver, `{"tool":"read_file","arguments":{"path":"hello.txt"}}`)
	var record struct {
		ArgumentsHash string `json:"arguments_hash"`
		PreviewDigest string `json:"preview_digest"`
	}
	if err := json.Unmarshal([]byte(h.must(t, http.StatusOK, "GET", "/v1/approvals/"+asked.ApprovalID, approver, "")), &record); err != nil {
		t.Fatal(err)
	}
	h.must(t, http.StatusOK, "POST", "/v1/approvals/"+asked.ApprovalID+"/approve", approver, asJSON(record))
	h.must(t, http.StatusOK, "GET", "/v1/calls/"+asked.ToolCallID+"?wait=60s", agent, "")
	records := h.journal(t, "--tool", "write_file")
	if len(records) != 2 || records[0].User != agentName || records[0].Approver != approverName {
		t.Errorf("the journal has %+v, want the start and end of a call of %s that %s approved", records, agentName, approverName)
	}
}
