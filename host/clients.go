package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// mcpClient is a program that speaks MCP, as its user knows it.
type mcpClient struct {
	name  string
	where string // what to do with the text
	http  string // what to do with it if it is for HTTP, "" for the same
	text  func(name string, s clientServer) (string, error)
}

// mcpClients are the programs that connect knows.
func mcpClients() []mcpClient {
	return []mcpClient{
		{"claude-code", "run this command in the project's directory", "put this into .mcp.json in the project's directory", claudeCode},
		{"cursor", "put this into .cursor/mcp.json, or ~/.cursor/mcp.json for every project", "", cursor},
		{"vscode", "put this into .vscode/mcp.json", "", vscode},
		{"codex", "add this to ~/.codex/config.toml", "", codex},
		{"json", "give this to the client", "", func(_ string, s clientServer) (string, error) { return indented(s.entry()) }},
	}
}

func clientNames() (names []string) {
	for _, c := range mcpClients() {
		names = append(names, c.name)
	}
	return names
}

// clientServer is how a client reaches a host: at an address with a token, or by
// starting a command.
type clientServer struct {
	url, token string
	command    string
	args       []string
}

// authorization is the value of the header that carries the token.
func (s clientServer) authorization() string { return "Bearer " + s.token }

// clientEntry is a server in the JSON that clients read.
type clientEntry struct {
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
}

func (s clientServer) entry() clientEntry {
	if s.command != "" {
		return clientEntry{Command: s.command, Args: s.args}
	}
	return clientEntry{URL: s.url, Headers: map[string]string{"Authorization": s.authorization()}}
}

// claudeCode is the command that adds a server to Claude Code, or what its file
// holds: a token does not belong on a command line, which every account can read.
func claudeCode(name string, s clientServer) (string, error) {
	if s.command == "" {
		entry := s.entry()
		entry.Type = "http"
		return indented(map[string]any{"mcpServers": map[string]any{name: entry}})
	}
	words := append([]string{"claude", "mcp", "add", name, "--", s.command}, s.args...)
	for i, word := range words {
		words[i] = shellWord(word)
	}
	return strings.Join(words, " "), nil
}

func cursor(name string, s clientServer) (string, error) {
	return indented(map[string]any{"mcpServers": map[string]any{name: s.entry()}})
}

func vscode(name string, s clientServer) (string, error) {
	entry := s.entry()
	entry.Type = "http"
	if s.command != "" {
		entry.Type = "stdio"
	}
	return indented(map[string]any{"servers": map[string]any{name: entry}})
}

// codex is the table of a server in the configuration of Codex.
func codex(name string, s clientServer) (string, error) {
	if s.command != "" {
		return fmt.Sprintf("[mcp_servers.%s]\ncommand = %s\nargs = %s", name, inTOML(s.command), inTOML(s.args)), nil
	}
	return fmt.Sprintf("[mcp_servers.%s]\nurl = %s\nhttp_headers = { Authorization = %s }", name, inTOML(s.url), inTOML(s.authorization())), nil
}

// inTOML is a string or a list of them: one of JSON is one of TOML, too.
func inTOML(v any) string {
	text, _ := json.Marshal(v) // never fails for strings
	return string(text)
}
