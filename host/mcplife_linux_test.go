package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/client"
	"github.com/toolhost/toolhost/internal/soak"
)

// livingServer is an MCP server and a call of which part of the answer is known.
type livingServer struct {
	name    string
	command []string
	tool    string
	args    map[string]any
	says    string // part of the answer, which is an error of a server that needs a network or a browser
}

// systemPython is the interpreter that servers in Python run with, of the system's own packages.
const systemPython = "/usr/bin/python3"

// localServers are not written in JavaScript: one with the MCP SDK for Go, one without any library.
func localServers(t *testing.T) []livingServer {
	t.Helper()
	if _, err := os.Stat(systemPython); err != nil {
		missing(t, systemPython)
	}
	script, err := filepath.Abs("testdata/mcp/notes.py")
	if err != nil {
		t.Fatal(err)
	}
	ada := map[string]any{"entities": []any{map[string]any{"name": "Ada", "entityType": "person", "observations": []any{"uses Emacs"}}}}
	return []livingServer{
		{"go", []string{filepath.Join(bin, "bridges/memory")}, "create_entities", ada, "Ada"},
		{"python", []string{systemPython, script}, "count_words", map[string]any{"path": "hello.txt"}, "2 words"},
	}
}

// publishedServers are the servers of internal/tools/servers and internal/tools/mcp.
func publishedServers(t *testing.T) (servers []livingServer) {
	t.Helper()
	node, err := filepath.EvalSymlinks(first(peerProgram(t, "node")))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		from, program, tool string
		args                map[string]any
		says                string
	}{
		{"mcp", "@modelcontextprotocol/server-filesystem/dist/index.js", "write_file", map[string]any{"path": "new.txt", "content": "new"}, "wrote"},
		{"mcp", "@modelcontextprotocol/server-memory/dist/index.js", "read_graph", nil, "entities"},
		{"mcp", "@modelcontextprotocol/server-everything/dist/index.js", "get-sum", map[string]any{"a": 2, "b": 40}, "42"},
		{"servers", "@modelcontextprotocol/server-sequential-thinking/dist/index.js", "sequentialthinking", map[string]any{"thought": "Measure first.", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}, "thoughtHistoryLength"},
		{"servers", "@modelcontextprotocol/server-github/dist/index.js", "search_repositories", map[string]any{"query": "emacs"}, "fetch failed"},
		{"servers", "@modelcontextprotocol/server-puppeteer/dist/index.js", "puppeteer_click", map[string]any{"selector": "a"}, "Chrome"},
		{"servers", "@upstash/context7-mcp/dist/index.js", "resolve-library-id", map[string]any{"query": "emacs", "libraryName": "emacs"}, "fetch failed"},
		{"servers", "@playwright/mcp/cli.js", "browser_close", nil, "Chrom"},
		{"servers", "@notionhq/notion-mcp-server/bin/cli.mjs", "API-get-self", nil, "getaddrinfo"},
		{"servers", "tavily-mcp/build/index.js", "tavily_crawl", map[string]any{"url": "https://example.com"}, "getaddrinfo"},
		{"servers", "chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js", "list_pages", nil, "Chrome"},
	} {
		script, err := filepath.Abs(filepath.Join("../internal/tools", s.from, "node_modules", s.program))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(script); err != nil {
			t.Fatalf("%v: make soak installs it", err)
		}
		command := []string{node, script}
		if strings.Contains(s.program, "filesystem") {
			command = append(command, ".")
		}
		servers = append(servers, livingServer{orName("", titleOf(packageName(s.program))), command, s.tool, s.args, s.says})
	}
	return servers
}

func first(text, _ string) string { return text }

// packageName returns the name of the package that a file below node_modules belongs to.
func packageName(file string) string {
	parts := strings.SplitN(file, "/", 3)
	if strings.HasPrefix(file, "@") {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// TestLifeOfMCPServers takes servers that others publish through the life of a plugin in the strict
// sandbox, without a network: added, pending, accepted, rejected, approved, stopped. With all rounds
// these are all servers that npm serves to `make soak`.
func TestLifeOfMCPServers(t *testing.T) {
	t.Parallel()
	servers := localServers(t)
	if soak.Rounds(0, 1) > 0 {
		servers = append(servers, publishedServers(t)...)
	}
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			testLife(t, server)
		})
	}
}

func testLife(t *testing.T, server livingServer) {
	t.Helper()
	config := writeConfig(t, listening)
	marker := "LIFE_OF_SERVER=" + config
	h := &host{config: config, dir: filepath.Dir(config), stateDir: filepath.Join(filepath.Dir(config), "state")}
	addServer(t, config, server.name, server.command, "--env", marker)
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stop)
	called := bridgedName(server.name, server.tool)
	digest := pendingDigest(t, h, server.name)
	if tools := h.must(t, 200, "GET", "/v1/tools", h.token, ""); strings.Contains(tools, `"`+called+`"`) {
		t.Errorf("the pending tool %s is listed", called)
	}
	if o := h.post(t, called, server.args); o.Status != client.Error || !strings.Contains(o.Error.Message, "an administrator has not accepted it") {
		t.Errorf("a call of a pending tool is %s", o.Raw)
	}

	h.ok(t, "plugins", "accept", server.name, "--digest", digest)
	if tools := h.must(t, 200, "GET", "/v1/tools", h.token, ""); !strings.Contains(tools, `"`+called+`"`) {
		t.Errorf("the accepted tool %s is not listed: %.500s", called, tools)
	}

	call, id := h.begin(t, called, server.args)
	h.answer(t, "reject", id)
	if o := h.outcome(t, call); o.Status != client.Rejected {
		t.Errorf("the rejected call is %s", o.Raw)
	}
	call, id = h.begin(t, called, server.args)
	h.answer(t, "approve", id)
	o := h.outcome(t, call)
	text, err := json.Marshal([]any{o.Result, o.Error})
	if err != nil || !strings.Contains(string(text), server.says) {
		t.Errorf("the approved call is %.2000s, want %q in it (%v)", text, server.says, err)
	}

	if len(withVariable(t, marker)) == 0 {
		t.Error("control: no process of the server runs")
	}
	h.stop()
	if left := withVariable(t, marker); len(left) > 0 {
		t.Errorf("processes have survived their host: %q", left)
	}
}

// addServer adds a program as a plugin without a network, to a configuration of no running host.
func addServer(t *testing.T, config, name string, command []string, flags ...string) {
	t.Helper()
	args := append([]string{"--config", config, "mcp", "add", "--yes", "--name", name, "--workspace", "rw", "--ask=false"}, flags...)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "toolhost"), append(append(args, "--"), command...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
	}
}

// withVariable returns the directories of the processes with a variable of that value in their
// environment, which is inherited.
func withVariable(t *testing.T, variable string) (found []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains("\x00"+string(text), "\x00"+variable+"\x00") {
			found = append(found, filepath.Dir(path))
		}
	}
	return found
}
