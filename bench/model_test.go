package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// beforeVariable names a directory with an earlier toolhost and its plugins, to compare with.
const beforeVariable = "TOOLHOST_BEFORE"

// BenchmarkModelBytes measures how many bytes of a result and of a list of tools reach a
// model, through clients that treat results as Claude Code and Codex do: they show the
// structured content of a result that has some, and otherwise its text.
func BenchmarkModelBytes(b *testing.B) {
	now := openModel(b, bin, `toolset "coding" {
  tools = ["read_file", "read_files", "list_directory", "search_files", "search_content", "write_file", "edit_file", "apply_patch",
    "move_file", "delete_file", "shell_exec", "shell_background", "process_output", "process_kill",
    "git_status", "git_diff", "git_log", "git_commit"]
}
client "searches" { tool_search_above = 30 }
`)
	var before *model
	if dir := os.Getenv(beforeVariable); dir != "" {
		before = openModel(b, dir, "")
	}
	for _, c := range modelCalls {
		b.Run(strings.ReplaceAll(c.name, " ", "_"), func(b *testing.B) {
			for b.Loop() { // once is enough: the sizes are always the same
				b.ReportMetric(float64(len(now.call(b, c))), "now-B")
				if before != nil {
					b.ReportMetric(float64(len(before.call(b, c))), "before-B")
				}
			}
		})
	}
	for _, list := range []struct{ name, path, client string }{
		{"all_tools", "/mcp", "bench"}, {"coding_toolset", "/mcp/coding", "bench"}, {"tool_search", "/mcp", "searches"},
	} {
		b.Run("list/"+list.name, func(b *testing.B) {
			for b.Loop() {
				tools, size := now.list(b, list.path, list.client)
				b.ReportMetric(float64(tools), "tools")
				b.ReportMetric(float64(size)/4, "tokens")
				if before != nil && list.name == "all_tools" {
					tools, size := before.list(b, list.path, list.client)
					b.ReportMetric(float64(tools), "before-tools")
					b.ReportMetric(float64(size)/4, "before-tokens")
				}
			}
		})
	}
}

// modelCall is a usual call. fails reports that its result is an error.
type modelCall struct {
	name, tool string
	args       map[string]any
	fails      bool
}

var modelCalls = []modelCall{
	{"read_file, 300 lines", "read_file", map[string]any{"path": "src/main.go"}, false},
	{"search_content", "search_content", map[string]any{"pattern": "func Handle1"}, false},
	{"list_directory", "list_directory", map[string]any{"path": "src"}, false},
	{"git_status", "git_status", nil, false},
	{"git_log", "git_log", nil, false},
	{"git_diff", "git_diff", nil, false},
	{"shell_exec, a test run", "shell_exec", map[string]any{"command": "sh run-tests.sh"}, false},
	{"web_fetch", "web_fetch", map[string]any{"url": "SITE/apache-dns-caveats.html"}, false},
	{"memory_search", "memory_search", map[string]any{"query": "which database does staging use"}, false},
	{"write_file", "write_file", map[string]any{"path": "notes.txt", "content": "one\ntwo\n"}, false},
	{"an error", "read_file", map[string]any{"path": "src/mian.go"}, true},
	{"a pending approval", "delete_file", map[string]any{"path": "src/main.go"}, true},
}

// model is a host and the client through which a model calls it.
type model struct {
	session *mcp.ClientSession
	said    serving
	site    string
}

// openModel starts a host of the programs in dir, in a workspace with what the calls name.
func openModel(b *testing.B, dir, blocks string) *model {
	b.Helper()
	site := httptest.NewServer(http.FileServer(http.Dir("../plugins/web/internal/page/testdata/golden")))
	b.Cleanup(site.Close)
	plugins := filepath.Join(dir, "plugins")
	if _, err := os.Stat(plugins); err != nil {
		plugins = dir
	}
	config := filepath.Join(b.TempDir(), "config.hcl")
	text := fmt.Sprintf(`
workspace  = "ws"
state_dir  = "state"
plugin_dir = %q
server { listen = "127.0.0.1:0" }
approvals { patience = "0s" }
plugin "fs" {
  tier   = "privileged"
  claims = "trust"
  approval { side_effecting = "allow" }
}
plugin "git" {
  tier   = "privileged"
  claims = "trust"
  sandbox {
    filesystem { exec = ["/usr/bin/git", "/usr/lib/git-core", "/usr/libexec/git-core", "/bin/sh"] }
  }
}
plugin "shell" {
  tier   = "privileged"
  claims = "trust"
  approval { privileged = "allow" }
  sandbox {
    filesystem { exec = ["system"] }
  }
}
plugin "web" {
  tier   = "privileged"
  claims = "trust"
  config {
    ports         = [%d]
    allow_private = ["127.0.0.1/32"]
  }
  sandbox {
    limits { memory = "1GiB" }
    filesystem {
      workspace = "none"
      read      = ["/proc"]
    }
    network { mode = "host" }
  }
  tool "web_fetch" { approval = "allow" }
}
plugin "memory" {
  tier   = "side_effecting"
  claims = "trust"
  approval { side_effecting = "allow" }
  sandbox {
    limits { memory = "1GiB" }
  }
}
%s`, plugins, netip.MustParseAddrPort(site.Listener.Addr().String()).Port(), blocks)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	writeProject(b, filepath.Join(filepath.Dir(config), "ws"))
	program := func(args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(dir, "toolhost"), append(args, "--log-level", "error", "--config", config)...)
		cmd.Stderr = os.Stderr
		return cmd
	}
	m := &model{site: site.URL}
	m.said, _ = serve(b, program("serve", "--json"))
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	var err error
	if m.session, err = client.Connect(b.Context(), &mcp.CommandTransport{Command: program("mcp")}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.session.Close() })
	for _, note := range []string{
		"Staging uses the PostgreSQL database on hydra, port 5433.", "The user prefers short commit messages.",
		"Releases are cut on Thursdays.", "The production database is read only for developers.", "Tests need Go 1.26.",
	} {
		m.call(b, modelCall{tool: "memory_save", args: map[string]any{"content": note}})
	}
	return m
}

// call returns what the model gets of a result.
func (m *model) call(b *testing.B, c modelCall) string {
	b.Helper()
	args := map[string]any{}
	for name, value := range c.args {
		if text, ok := value.(string); ok {
			value = strings.Replace(text, "SITE", m.site, 1)
		}
		args[name] = value
	}
	r, err := m.session.CallTool(b.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: args})
	if err != nil || r.IsError != c.fails {
		b.Fatalf("%s: %v, %+v", c.tool, err, r)
	}
	if r.StructuredContent != nil && !r.IsError {
		return string(asJSON(b, r.StructuredContent))
	}
	var parts []string
	for _, content := range r.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			parts = append(parts, text.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// list returns how many tools a client lists, and the bytes of their names, descriptions and
// input schemas.
func (m *model) list(b *testing.B, path, name string) (tools, size int) {
	b.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: name, Version: "1"}, nil)
	s, err := client.Connect(b.Context(), &mcp.StreamableClientTransport{
		Endpoint: m.said.URL + path, HTTPClient: &http.Client{Transport: newBearer(b, m.said.Token)},
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for tool, err := range s.Tools(b.Context(), nil) {
		if err != nil {
			b.Fatal(err)
		}
		tools++
		size += len(tool.Name) + len(tool.Description) + len(asJSON(b, tool.InputSchema))
	}
	return tools, size
}

// asJSON returns a value as JSON without escapes for HTML.
func asJSON(b *testing.B, v any) []byte {
	b.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		b.Fatal(err)
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// writeProject writes a repository with forty files, twenty commits and some changes.
func writeProject(b *testing.B, dir string) {
	b.Helper()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z", "GIT_CONFIG_GLOBAL=/dev/null")
		if text, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v\n%s", args, err, text)
		}
	}
	var code, run strings.Builder
	for i := range 75 {
		fmt.Fprintf(&code, "// Handle%d answers request %d.\nfunc Handle%d(r Request) Answer {\n\treturn Answer{Code: %d, Text: r.Text + \"!\"}\n", i, i, i, 200+i)
		fmt.Fprintf(&run, "=== RUN   TestHandle%d\n--- PASS: TestHandle%d (0.0%ds)\n", i, i, i%10)
	}
	run.WriteString("FAIL\nFAIL\texample.com/src\t0.412s\n")
	write("src/main.go", code.String())
	write("run-tests.sh", "cat <<'END'\n"+run.String()+"END\nexit 0\n")
	for i := range 40 {
		write(fmt.Sprintf("src/part%02d.go", i), fmt.Sprintf("package src\n\nconst Part%d = %d\n", i, i))
	}
	git("init", "-q", "-b", "main")
	git("add", ".")
	for i := range 20 {
		git("commit", "-q", "--allow-empty", "-m", fmt.Sprintf("part%02d: handle requests of kind %d", i, i))
	}
	write("src/main.go", strings.Replace(code.String(), `"!"`, `"?"`, 12))
	write("src/part07.go", "package src\n\nconst Part7 = 70\n")
	write("src/new.go", "package src\n")
}
