package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolhost is a running host with the shipped configuration and a client of its tools. A person
// answers what it asks, and lets similar calls of the session run where it offers that.
type toolhost struct {
	session *mcp.ClientSession
	rest    *http.Client
	key     string
	stop    context.CancelFunc // ends the person
	asked   chan answered
	log     io.Writer
}

// answered is how many questions a person has answered.
type answered struct {
	n   int
	err error
}

// startToolhost starts a host for the workspace dir/ws. The host keeps its files in dir/state.
func startToolhost(ctx context.Context, o options, dir string) (*toolhost, error) {
	shipped, err := os.ReadFile(o.config)
	if err != nil {
		return nil, err
	}
	text := string(shipped)
	for old, replaced := range map[string]string{
		`workspace = "."`:           "workspace = \"ws\"\nstate_dir = \"state\"",
		`"bin/plugins"`:             fmt.Sprintf("%q", filepath.Join(o.bin, "plugins")),
		`listen = "127.0.0.1:7780"`: `listen = ""`,
	} {
		if !strings.Contains(text, old) {
			return nil, fmt.Errorf("%s does not contain %s", o.config, old)
		}
		text = strings.Replace(text, old, replaced, 1)
	}
	config := filepath.Join(dir, "config.hcl")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(o.bin, "toolhost"), "mcp", "--config", config, "--log-level", "error")
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	state := filepath.Join(dir, "state")
	key, err := os.ReadFile(filepath.Join(state, "approver.key"))
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}
	h := &toolhost{session: session, key: strings.TrimSpace(string(key)), asked: make(chan answered, 1), log: o.log}
	h.rest = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(state, "control.sock"))
	}}}
	ctx, h.stop = context.WithCancel(ctx)
	go func() { h.asked <- h.answer(ctx) }() // ends with ctx
	return h, nil
}

// call calls a tool and returns what a client such as Claude Code shows the model.
func (h *toolhost) call(ctx context.Context, tool string, args map[string]any) (text string, files int, err error) {
	r, err := h.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", 0, fmt.Errorf("call %s: %w", tool, err)
	}
	if r.StructuredContent != nil && !r.IsError {
		text, err := json.Marshal(r.StructuredContent)
		return string(text), 0, err
	}
	var parts []string
	for _, c := range r.Content {
		text, ok := c.(*mcp.TextContent)
		if !ok {
			return "", 0, fmt.Errorf("call %s: the result has a %T, which is not counted", tool, c)
		}
		parts = append(parts, text.Text)
	}
	return strings.Join(parts, "\n"), 0, nil
}

// answer is the person: it approves what the host asks about until ctx ends.
func (h *toolhost) answer(ctx context.Context) answered {
	for n := 0; ; {
		var open []struct {
			ID string `json:"id"`
		}
		err := h.request(ctx, http.MethodGet, "/v1/approvals?state=open&wait=30s", nil, &open)
		for i := 0; i < len(open) && err == nil; i++ {
			n++
			err = h.approve(ctx, open[i].ID)
		}
		if ctx.Err() != nil {
			return answered{n: n}
		}
		if err != nil {
			return answered{n, fmt.Errorf("answer questions: %w", err)}
		}
	}
}

func (h *toolhost) approve(ctx context.Context, id string) error {
	var record struct {
		Hash     string `json:"arguments_hash"`
		Digest   string `json:"preview_digest"`
		Standing bool   `json:"standing"`
		Summary  string `json:"summary"`
		NoGrant  string `json:"no_grant"`
	}
	if err := h.request(ctx, http.MethodGet, "/v1/approvals/"+id, nil, &record); err != nil {
		return err
	}
	fmt.Fprintf(h.log, "=== question: %s (offers a grant: %t %s)\n", record.Summary, record.Standing, record.NoGrant)
	answer := map[string]any{"arguments_hash": record.Hash}
	if record.Digest != "" {
		answer["preview_digest"] = record.Digest
	}
	if record.Standing {
		answer["grant"] = map[string]any{"session": true}
	}
	return h.request(ctx, http.MethodPost, "/v1/approvals/"+id+"/approve", answer, nil)
}

// request makes a request as the approver.
func (h *toolhost) request(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.rest.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	return err
}

// close ends the host and returns how many questions it has asked.
func (h *toolhost) close() (int, error) {
	h.stop()
	a := <-h.asked
	h.rest.CloseIdleConnections()
	return a.n, errors.Join(a.err, h.session.Close())
}
