package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// agent is a program with an MCP client, as its user knows it.
type agent struct {
	name  string
	where string // what to do with the text
	text  func(name string, s agentServer) (string, error)
}

// agents are the programs that connect knows.
func agents() []agent {
	return []agent{
		{"claude-code", "run this command in the project's directory", claudeCode},
		{"cursor", "put this into .cursor/mcp.json, or ~/.cursor/mcp.json for every project", cursor},
		{"vscode", "put this into .vscode/mcp.json", vscode},
		{"codex", "add this to ~/.codex/config.toml", codex},
		{"json", "give this to the client", func(_ string, s agentServer) (string, error) { return indented(s.entry()) }},
	}
}

func agentNames() (names []string) {
	for _, g := range agents() {
		names = append(names, g.name)
	}
	return names
}

// agentServer is how an agent reaches a host: at an address with a token, or by
// starting a command.
type agentServer struct {
	url, token string
	command    string
	args       []string
}

// authorization is the value of the header that carries the token.
func (s agentServer) authorization() string { return "Bearer " + s.token }

// agentEntry is a server in the JSON that agents read.
type agentEntry struct {
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
}

func (s agentServer) entry() agentEntry {
	if s.command != "" {
		return agentEntry{Command: s.command, Args: s.args}
	}
	return agentEntry{URL: s.url, Headers: map[string]string{"Authorization": s.authorization()}}
}

// claudeCode is the command that adds a server to Claude Code.
func claudeCode(name string, s agentServer) (string, error) {
	words := []string{"claude", "mcp", "add"}
	if s.command != "" {
		words = append(words, name, "--", s.command)
		words = append(words, s.args...)
	} else {
		words = append(words, "--transport", "http", name, s.url, "--header", "Authorization: "+s.authorization())
	}
	for i, word := range words {
		words[i] = shellWord(word)
	}
	return strings.Join(words, " "), nil
}

func cursor(name string, s agentServer) (string, error) {
	return indented(map[string]any{"mcpServers": map[string]any{name: s.entry()}})
}

func vscode(name string, s agentServer) (string, error) {
	entry := s.entry()
	entry.Type = "http"
	if s.command != "" {
		entry.Type = "stdio"
	}
	return indented(map[string]any{"servers": map[string]any{name: entry}})
}

// codex is the table of a server in the configuration of Codex.
func codex(name string, s agentServer) (string, error) {
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
