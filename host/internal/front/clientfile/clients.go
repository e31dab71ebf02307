package clientfile

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Client is a program that uses MCP.
type Client struct {
	Name  string
	Where string // where [Paste] belongs
	HTTP  string // where it belongs for HTTP; "" means the same place
	Paste func(name string, s Server) Paste
	// Target returns what to change for a server, so that the client in a place uses it. It is
	// nil if the client has no file.
	Target func(name string, s Server, p Place) (Target, error)
}

// Paste is what a person gives to a client. One of its fields is set.
type Paste struct {
	Command []string // to run
	JSON    any
	TOML    string
}

// Target is a file to change.
type Target struct {
	File   string
	Edit   Edit
	Mode   fs.FileMode // of a new file
	Shared bool        // the file is in a project, so that version control may take it
	Next   string      // what to do after the file was written
}

// private is the mode of new files that may hold a token.
const private = 0o600

// Server describes how a client reaches a host: at an address with a token, or by starting a
// command.
type Server struct {
	URL, Token string
	Command    string
	Args       []string
}

// Clients returns the known programs that use MCP.
func Clients() []Client {
	return []Client{
		{"claude-code", "run this command in the project's directory", "put this into .mcp.json in the project's directory", claudeCode, claudeCodeTarget},
		{"cursor", "put this into .cursor/mcp.json, or ~/.cursor/mcp.json for every project", "", cursor, cursorTarget},
		{"vscode", "put this into .vscode/mcp.json", "", vscode, vscodeTarget},
		{"codex", "add this to ~/.codex/config.toml", "", codex, codexTarget},
		{"json", "give this to the client", "", func(_ string, s Server) Paste { return Paste{JSON: s.entry()} }, nil},
	}
}

// Managed returns Claude Code with the servers that the machine's administrator chooses: it then
// uses no others. root is "/", except in tests.
func Managed(root string) Client {
	path := filepath.Join(root, managedPath(runtime.GOOS))
	only := func(name string, s Server) any { return servers("mcpServers", name, s.typed()) }
	return Client{
		Name: "claude-code", Where: "put this into " + path,
		Paste: func(name string, s Server) Paste { return Paste{JSON: only(name, s)} },
		Target: func(name string, s Server, _ Place) (Target, error) {
			// Every account must be able to read the file, which never holds a token.
			return Target{path, Only(only(name, s)), 0o644, false, "restart claude; /mcp shows this host as the only server"}, nil
		},
	}
}

// managedPath returns where Claude Code reads managed servers.
func managedPath(system string) string {
	if system == "darwin" {
		return "/Library/Application Support/ClaudeCode/managed-mcp.json"
	}
	return "/etc/claude-code/managed-mcp.json"
}

// claudeCode returns the command that adds a server to Claude Code. For HTTP it returns the
// content of a file instead, because every account can read a command line, which so must not
// contain a token.
func claudeCode(name string, s Server) Paste {
	if s.Command == "" {
		return Paste{JSON: servers("mcpServers", name, s.typed())}
	}
	return Paste{Command: append([]string{"claude", "mcp", "add", name, "--", s.Command}, s.Args...)}
}

// claudeCodeTarget adds a server for one project and one user, as `claude mcp add` does. The
// project's .mcp.json is shared with a team, which does not have this machine's paths.
func claudeCodeTarget(name string, s Server, p Place) (Target, error) {
	file, err := inHome("CLAUDE_CONFIG_DIR", ".claude.json")
	project := p.repository()
	edit := JSON([]string{"projects", project, "mcpServers", name}, s.typed())
	return Target{file, edit, private, false, "start claude in " + project + "; /mcp shows whether it is connected"}, err
}

func cursor(name string, s Server) Paste {
	return Paste{JSON: servers("mcpServers", name, s.entry())}
}

func cursorTarget(name string, s Server, p Place) (Target, error) {
	edit := JSON([]string{"mcpServers", name}, s.entry())
	return Target{filepath.Join(p.project(), ".cursor/mcp.json"), edit, private, true, "restart Cursor; its settings for MCP show whether it is connected"}, nil
}

func vscode(name string, s Server) Paste {
	return Paste{JSON: servers("servers", name, s.typed())}
}

func vscodeTarget(name string, s Server, p Place) (Target, error) {
	edit := JSON([]string{"servers", name}, s.typed())
	return Target{filepath.Join(p.project(), ".vscode/mcp.json"), edit, private, true, `run "MCP: List Servers" in VS Code and start the server`}, nil
}

// codex returns the table for a server in the configuration of Codex.
func codex(name string, s Server) Paste {
	header := "[mcp_servers." + name + "]\n"
	if s.Command != "" {
		return Paste{TOML: header + "command = " + inTOML(s.Command) + "\nargs = " + inTOML(s.Args)}
	}
	return Paste{TOML: header + "url = " + inTOML(s.URL) + "\nhttp_headers = { Authorization = " + inTOML(s.authorization()) + " }"}
}

func codexTarget(name string, s Server, _ Place) (Target, error) {
	file, err := inHome("CODEX_HOME", ".codex/config.toml")
	return Target{file, TOML("mcp_servers", name, codex(name, s).TOML), private, false, "restart codex; /mcp shows whether it is connected"}, err
}

// inTOML returns a string or a list of strings as TOML. Their JSON is valid TOML.
func inTOML(v any) string {
	text, _ := json.Marshal(v) // strings always encode
	return string(text)
}

// inHome returns a file of the user. If the variable is set, it names the file's directory.
func inHome(variable, path string) (string, error) {
	if dir := os.Getenv(variable); dir != "" {
		return filepath.Join(dir, filepath.Base(path)), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the home directory of %s: %w", path, err)
	}
	return filepath.Join(home, path), nil
}

// entry is a server in the JSON configuration of clients.
type entry struct {
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
}

func (s Server) entry() entry {
	if s.Command != "" {
		return entry{Command: s.Command, Args: s.Args}
	}
	return entry{URL: s.URL, Headers: map[string]string{"Authorization": s.authorization()}}
}

// typed returns the entry with its type, which some clients require.
func (s Server) typed() entry {
	e := s.entry()
	e.Type = "http"
	if s.Command != "" {
		e.Type = "stdio"
	}
	return e
}

// authorization returns the header with the token.
func (s Server) authorization() string { return "Bearer " + s.Token }

// servers returns one entry among the servers of a client.
func servers(group, name string, e entry) any {
	return map[string]any{group: map[string]any{name: e}}
}
