package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/client"
)

// listening has a host choose its port, and removes the limit of changes per hour.
const listening = `
server {
  listen = "127.0.0.1:0"
  grace  = "1s"
}
policy { actions_per_hour = "unlimited" }
`

// writing enables the files plugin, whose changes need approval.
const writing = `
plugin "fs" {
  path   = "fs"
  tier   = "privileged"
  claims = "trust"
}
`

// counting enables the plugin that counts: probe_count needs approval, probe_tally does not.
const counting = `
plugin "probe" {
  path   = "probe"
  tier   = "side_effecting"
  claims = "trust"
  tool "probe_tally" { approval = "allow" }
  sandbox { isolation = "basic" } # the tests tell processes by their ids
}
`

// host is a `toolhost serve` in a separate process.
type host struct {
	config, dir, stateDir string
	url, mcp, token       string // of the agent
	logLevel              string // "" means "error"
	site                  string // the site that the web plugin may read, or ""
	cmd                   *exec.Cmd
	ended                 bool
}

// serve starts a host and waits until it is ready. The end of the test stops it.
func serve(t *testing.T, config string) *host {
	t.Helper()
	h := &host{config: config, dir: filepath.Dir(config)}
	h.stateDir = filepath.Join(h.dir, "state")
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stop)
	return h
}

// serveShipped starts a host with the default configuration, on a port of its own and without
// a limit of changes per hour.
func serveShipped(t *testing.T) *host {
	t.Helper()
	return serveShippedWith(t, func(text string) string { return text })
}

// serveShippedWith is like serveShipped, with a changed configuration.
func serveShippedWith(t *testing.T, change func(text string) string) *host {
	t.Helper()
	blocks, err := shippedBlocks()
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, writeConfig(t, change(unlimited(blocks))))
}

// start starts the host's process.
func (h *host) start() error {
	h.cmd = exec.Command(filepath.Join(bin, "toolhost"), "serve", "--json", "--log-level", cmp.Or(h.logLevel, "error"), "--config", h.config)
	stderr, err := os.Create(filepath.Join(h.dir, "stderr"))
	if err != nil {
		return err
	}
	defer stderr.Close()
	h.cmd.Stderr = stderr
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := h.cmd.Start(); err != nil {
		return err
	}
	h.ended = false
	var said serving
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		_ = h.cmd.Wait()
		h.ended = true
		return fmt.Errorf("toolhost serve: %w\n%s", err, h.said())
	}
	token, err := os.ReadFile(said.Token)
	h.url, h.mcp, h.token = said.URL, said.MCP, strings.TrimSpace(string(token))
	return err
}

// said returns what the host has written to standard error since its start.
func (h *host) said() string {
	text, _ := os.ReadFile(filepath.Join(h.dir, "stderr"))
	return string(text)
}

// kill ends the host with SIGKILL.
func (h *host) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
	h.ended = true
}

// stop tells the host to stop and waits until it has.
func (h *host) stop() {
	if h.ended {
		return
	}
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	_ = h.cmd.Wait()
	h.ended = true
}

// restart starts the host again after it has ended.
func (h *host) restart(t *testing.T) {
	t.Helper()
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
}

// send sends a request with an agent's token and returns the answer.
func (h *host) send(method, path, token, body string, header ...string) (status int, text string, err error) {
	request, err := http.NewRequest(method, h.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	bounded := http.Client{Timeout: 4 * patience}
	response, err := bounded.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, string(answer), err
}

// must sends a request that must be answered with the given status.
func (h *host) must(t *testing.T, want int, method, path, token, body string, header ...string) string {
	t.Helper()
	status, text, err := h.send(method, path, token, body, header...)
	if err != nil || status != want {
		t.Fatalf("%s %s = %d %s, %v; want %d", method, path, status, text, err, want)
	}
	return text
}

// post makes a call over REST and returns its outcome, which may be pending.
func (h *host) post(t *testing.T, tool string, args map[string]any, header ...string) client.Outcome {
	t.Helper()
	status, text, err := h.send("POST", "/v1/calls", h.token, asJSON(map[string]any{"tool": tool, "arguments": args}), header...)
	return outcomeOf(t, status, text, err)
}

// outcome waits for the end of a call.
func (h *host) outcome(t *testing.T, id string) client.Outcome {
	t.Helper()
	status, text, err := h.send("GET", "/v1/calls/"+id+"?wait=60s", h.token, "")
	return outcomeOf(t, status, text, err)
}

func outcomeOf(t *testing.T, status int, text string, err error) client.Outcome {
	t.Helper()
	var o client.Outcome
	if err == nil {
		err = json.Unmarshal([]byte(text), &o)
	}
	if err != nil || status >= 300 {
		t.Fatalf("the answer to a call is %d %s, %v", status, text, err)
	}
	return o
}

// begin makes a call that needs approval, and returns its id and that of the approval.
func (h *host) begin(t *testing.T, tool string, args map[string]any, header ...string) (call, approvalID string) {
	t.Helper()
	o := h.post(t, tool, args, append([]string{"Prefer", "respond-async"}, header...)...)
	eventually(t, "the call waits for a person", func() bool {
		status, text, err := h.send("GET", "/v1/calls/"+o.ToolCallID, h.token, "")
		if o = outcomeOf(t, status, text, err); o.Status != client.Pending {
			t.Fatalf("%s(%v) was not asked about: %s", tool, args, text)
		}
		return o.ApprovalID != ""
	})
	return o.ToolCallID, o.ApprovalID
}

// approver returns a client that may decide and administer.
func (h *host) approver(t *testing.T) *client.Client {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(h.stateDir, "approver.key"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{StateDir: h.stateDir, Token: strings.TrimSpace(string(key))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// file returns the content of a file in the workspace, or "" if there is none.
func (h *host) file(name string) string {
	text, _ := os.ReadFile(filepath.Join(h.dir, "ws", name))
	return string(text)
}

// write writes a file in the workspace, without a tool.
func (h *host) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, "ws", name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// counted returns the lines that the counting tools have written.
func (h *host) counted() []string {
	return strings.Fields(strings.ReplaceAll(h.file("count"), " ", ","))
}
