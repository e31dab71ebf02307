package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/toolhost/toolhost/internal/mockmodel"
)

// claudeCode is a running Claude Code in its mode "manual", whose model is a mock. A person
// answers what it asks, and lets similar calls of the session run where it offers that.
type claudeCode struct {
	model *mockmodel.Model
	cmd   *exec.Cmd
	stdin io.WriteCloser
	asked chan int // gets the number of questions once the program has ended
	log   io.Writer
}

// startClaudeCode starts Claude Code in the repository dir/ws. It keeps its files in dir/home.
func startClaudeCode(ctx context.Context, o options, dir string) (*claudeCode, error) {
	home := filepath.Join(dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	c := &claudeCode{model: mockmodel.New(), asked: make(chan int, 1), log: o.log}
	c.cmd = exec.CommandContext(ctx, o.claude, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
		"--permission-prompt-tool", "stdio", "--permission-mode", "manual", "--setting-sources", "", "--strict-mcp-config")
	c.cmd.Dir = filepath.Join(dir, "ws")
	c.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=dumb", "GOFLAGS=-trimpath", "CGO_ENABLED=0",
		"ANTHROPIC_BASE_URL=" + c.model.URL(), "ANTHROPIC_API_KEY=sk-mock", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1",
	}
	log, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.cmd.Stderr = log
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { c.asked <- c.answer(out) }() // ends with the program's output
	return c, c.send(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": "Do the task."}})
}

func (c *claudeCode) send(message map[string]any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = c.stdin.Write(append(line, '\n'))
	return err
}

// answer is the person: it allows what Claude Code asks about until its output ends, and
// returns how often it was asked.
func (c *claudeCode) answer(out io.Reader) int {
	asked := 0
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return asked
		}
		var asks struct {
			Type    string `json:"type"`
			ID      string `json:"request_id"`
			Request struct {
				Subtype     string           `json:"subtype"`
				Input       json.RawMessage  `json:"input"`
				Description string           `json:"description"`
				Suggestions []map[string]any `json:"permission_suggestions"`
			} `json:"request"`
		}
		if json.Unmarshal(line, &asks) != nil || asks.Request.Subtype != "can_use_tool" {
			continue
		}
		asked++
		fmt.Fprintf(c.log, "=== question: %s (offers %v)\n", asks.Request.Description, asks.Request.Suggestions)
		for _, s := range asks.Request.Suggestions {
			s["destination"] = "session"
		}
		_ = c.send(map[string]any{"type": "control_response", "response": map[string]any{ // if it fails, the call ends without a result
			"subtype": "success", "request_id": asks.ID,
			"response": map[string]any{"behavior": "allow", "updatedInput": asks.Request.Input, "updatedPermissions": asks.Request.Suggestions},
		}})
	}
}

func (c *claudeCode) call(ctx context.Context, tool string, args map[string]any) (text string, files int, err error) {
	text, err = c.model.Call(ctx, "", tool, args)
	return text, c.model.Files(), err
}

// close ends the program and returns how many questions it has asked.
func (c *claudeCode) close() (int, error) {
	c.model.End()
	err := c.stdin.Close()
	asked := <-c.asked
	err = errors.Join(err, c.cmd.Wait())
	c.model.Close()
	return asked, err
}
