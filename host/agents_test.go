package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/internal/mockmodel"
)

// agent is a client of the host whose model makes the calls that a test asks for.
type agent struct {
	// call has the model call a tool and returns the result that the model receives.
	call func(t *testing.T, tool string, args map[string]any) string
	// offered returns what the model receives before its first call: instructions and tools.
	// It is nil if the client does not show the instructions to the model.
	offered func() string
	// tools returns the list of tools that the model receives. It is nil if that list may be
	// incomplete.
	tools func(t *testing.T) string
	// listedOnly reports that the client refuses to call tools that are not listed.
	listedOnly bool
}

// agentClients start a client that connects to a host with the given configuration. The first
// three run in CI. The others are the real programs, which `make agents` installs and runs
// with a mock model.
var agentClients = []struct {
	name  string
	real  bool
	start func(t *testing.T, config string) agent
}{
	{"like claude code", false, mimicClaudeCode},
	{"like codex", false, mimicCodex},
	{"typescript sdk", false, typescriptAgent},
	{"claude code", true, claudeCodeAgent},
	{"codex", true, codexAgent},
}

// realAgents is set by `make agents`.
const realAgents = "TOOLHOST_AGENTS"

// mimicClaudeCode is a client that treats results as Claude Code does: it shows only the
// structured content of a successful result that has some, and saves a text of more than
// 49,900 characters to a file.
func mimicClaudeCode(t *testing.T, config string) agent {
	t.Helper()
	s := connectAs(t, toolhost(context.WithoutCancel(t.Context()), config, "mcp"), "2025-11-25", "claude-code", nil)
	return agent{offered: func() string { return s.InitializeResult().Instructions }, call: func(t *testing.T, tool string, args map[string]any) string {
		t.Helper()
		text := s.shown(t, tool, args)
		if n := len([]rune(text)); n > 49_900 {
			return fmt.Sprintf("Error: result (%d characters) exceeds maximum allowed tokens. Output has been saved to a file.", n)
		}
		return text
	}}
}

// mimicCodex is a client that treats results as Codex does: it shows only the structured
// content if there is some, and only the beginning and the end of a long text.
func mimicCodex(t *testing.T, config string) agent {
	t.Helper()
	const kept = 13_000
	s := connectAs(t, toolhost(context.WithoutCancel(t.Context()), config, "mcp"), "2025-06-18", "codex-mcp-client", nil)
	return agent{offered: func() string { return s.InitializeResult().Instructions }, call: func(t *testing.T, tool string, args map[string]any) string {
		t.Helper()
		text := s.shown(t, tool, args)
		if len(text) > kept {
			return text[:kept/2] + fmt.Sprintf("…%d characters truncated…", len(text)-kept) + text[len(text)-kept/2:]
		}
		return text
	}}
}

// shown calls a tool and returns the text that Claude Code and Codex would show a model.
func (s *session) shown(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return err.Error()
	}
	if r.StructuredContent != nil && !r.IsError {
		text, err := json.Marshal(r.StructuredContent)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	parts := make([]string, 0, len(r.Content))
	for _, c := range r.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			parts = append(parts, c.Text)
		case *mcp.ImageContent:
			parts = append(parts, "[image]")
		default:
			parts = append(parts, fmt.Sprintf("[%T]", c))
		}
	}
	return strings.Join(parts, "\n")
}

// typescriptAgent is a client of the TypeScript SDK. It keeps the SDK's default time-out,
// which progress does not extend.
func typescriptAgent(t *testing.T, config string) agent {
	t.Helper()
	node, _ := peerProgram(t, "mcp-inspector")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), node, "agent.mjs", filepath.Join(bin, "toolhost"), "mcp", "--config", config)
	cmd.Dir = "../internal/tools/mcp"
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends the client
		_ = cmd.Wait()
	})
	answers := bufio.NewReader(out)
	ask := func(t *testing.T, request map[string]any) string {
		t.Helper()
		if err := json.NewEncoder(in).Encode(request); err != nil {
			t.Fatal(err)
		}
		line, err := answers.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the client gives no answer: %v", err)
		}
		var text string
		if err := json.Unmarshal(line, &text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	offered := func() string { return ask(t, map[string]any{"offered": true}) }
	return agent{
		offered: offered,
		tools: func(t *testing.T) string {
			t.Helper()
			var said struct {
				Tools json.RawMessage `json:"tools"`
			}
			if err := json.Unmarshal([]byte(offered()), &said); err != nil {
				t.Fatal(err)
			}
			return string(said.Tools)
		},
		call: func(t *testing.T, tool string, args map[string]any) string {
			t.Helper()
			return ask(t, map[string]any{"tool": tool, "args": args})
		},
	}
}

// claudeCodeAgent is Claude Code with a mock model.
func claudeCodeAgent(t *testing.T, config string) agent {
	t.Helper()
	model, dir := mockmodel.New(), t.TempDir()
	servers := filepath.Join(dir, "mcp.json")
	writeJSON(t, servers, map[string]any{"mcpServers": map[string]any{"toolhost": map[string]any{
		"command": filepath.Join(bin, "toolhost"), "args": []string{"mcp", "--config", config},
	}}})
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), agentProgram(t, "@anthropic-ai/claude-code-linux-x64/claude"),
		"-p", "go", "--mcp-config", servers, "--strict-mcp-config", "--allowedTools", "mcp__toolhost", "--output-format", "stream-json", "--verbose")
	cmd.Env = []string{
		"ANTHROPIC_BASE_URL=" + model.URL(), "ANTHROPIC_API_KEY=sk-mock", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "DISABLE_ERROR_REPORTING=1", "MCP_TIMEOUT=60000",
	}
	a := converse(t, model, cmd, dir, func(tool string) (string, string) { return "", "mcp__toolhost__" + tool })
	a.listedOnly = true
	return a
}

// codexAgent is Codex with a mock model.
func codexAgent(t *testing.T, config string) agent {
	t.Helper()
	model, dir := mockmodel.New(), t.TempDir()
	home := filepath.Join(dir, "codex")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf(`
model           = "gpt-5"
model_provider  = "mock"
approval_policy = "never"
sandbox_mode    = "danger-full-access"
[model_providers.mock]
name     = "mock"
base_url = %q
env_key  = "MOCK_KEY"
wire_api = "responses"
[mcp_servers.toolhost]
command = %q
args    = ["mcp", "--config", %q]
startup_timeout_sec = 60
`, model.URL()+"/v1", filepath.Join(bin, "toolhost"), config)
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	program := agentProgram(t, ".bin/codex")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "exec", "--skip-git-repo-check", "--json", "go")
	cmd.Env = []string{"CODEX_HOME=" + home, "MOCK_KEY=mock"}
	a := converse(t, model, cmd, dir, func(tool string) (string, string) { return "mcp__toolhost", tool })
	a.listedOnly = true
	return a
}

// converse starts a client in its own directory and connects it to a mock model.
func converse(t *testing.T, model *mockmodel.Model, cmd *exec.Cmd, dir string, named func(tool string) (namespace, name string)) agent {
	t.Helper()
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"), "HOME="+dir, "TERM=dumb")
	log, err := os.Create(filepath.Join(dir, "client.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		model.End()
		time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		model.Close()
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the client printed\n%s", text)
		}
	})
	return agent{
		offered: func() string { return string(model.First()) },
		call: func(t *testing.T, tool string, args map[string]any) string {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			if args == nil {
				args = map[string]any{} // clients refuse null
			}
			namespace, name := named(tool)
			text, err := model.Call(ctx, namespace, name, args)
			if err != nil {
				t.Fatal(err)
			}
			return text
		},
	}
}

// agentProgram returns the path of a program that `make agents` installs.
func agentProgram(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../internal/tools/agents/node_modules", path))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; make agents installs it", err)
	}
	return path
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
