package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/config"
	"github.com/toolhost/toolhost/host/internal/daemon"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// connection is what `toolhost connect --json` prints.
type connection struct {
	Client string `json:"client"`
	Name   string `json:"name"`
	// Where says where the text belongs.
	Where string `json:"where"`
	Text  string `json:"text"`
}

func (a *app) connectCommand() *cobra.Command {
	name, tokenFile, http := "toolhost", "", false
	cmd := &cobra.Command{
		Use:   "connect CLIENT",
		Short: "Print the configuration that connects an MCP client to this host",
		Long: `Print the configuration that connects an MCP client to this host: ` + either(clientNames()) + `.
Standard output holds only the text to paste. The client starts "toolhost mcp", which
connects to the running host over its control socket or becomes the host itself; no
token leaves the host. With --http, the client connects to the configured address,
where "toolhost serve" must run, and the output holds the agents' token: keep it
secret. With --token-file, the client uses the token in that file; a token with
elicitation lets the client ask its own user for approval.`,
		Example: `  toolhost connect claude-code
  toolhost connect cursor > .cursor/mcp.json
  toolhost connect claude-code --token-file ~/.config/toolhost/claude-code.token
  toolhost connect vscode --http`,
		Args:      namesAClient,
		ValidArgs: clientNames(),
		RunE: func(_ *cobra.Command, args []string) error {
			if !tool.ValidPluginName(name) {
				return &usageError{fmt.Errorf("--name: %q cannot be a server's name: expected a lower-case letter, then at most 63 lower-case letters, digits, _ and -", name)}
			}
			return a.connect(args[0], name, tokenFile, http)
		},
	}
	cmd.Flags().BoolVar(&http, "http", false, "connect over HTTP instead of starting a process")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "a file that holds the token to use instead of the agents' token")
	cmd.Flags().StringVar(&name, "name", name, "the client's name for this host")
	return cmd
}

// namesAClient requires the name of one known client.
func namesAClient(_ *cobra.Command, args []string) error {
	names := clientNames()
	switch {
	case len(args) == 0:
		return fmt.Errorf("expected a CLIENT: %s", either(names))
	case len(args) > 1:
		return fmt.Errorf("expected one CLIENT, not %d", len(args))
	case slices.Contains(names, args[0]):
		return nil
	}
	err := fmt.Errorf("unknown client %q, expected %s", args[0], either(names))
	if near := schema.Nearest(args[0], names); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, near[0])
	}
	return err
}

// connect prints the configuration of a client.
func (a *app) connect(client, name, tokenFile string, http bool) error {
	reach := a.overStdio
	if http {
		reach = a.overHTTP
	}
	server, err := reach(tokenFile)
	if err != nil {
		return err
	}
	known := mcpClients()[slices.Index(clientNames(), client)] // namesAClient has checked it
	text, err := known.text(name, server)
	if err != nil {
		return fmt.Errorf("connect %s: %w", client, err)
	}
	where := known.where
	if http {
		where = cmp.Or(known.http, where)
	}
	if a.json {
		return a.printJSON(connection{Client: client, Name: name, Where: where, Text: text})
	}
	if isTerminal(a.stderr) {
		fmt.Fprintf(a.stderr, "%s:\n", where)
	}
	_, err = fmt.Fprint(a.stdout, text, "\n")
	return err
}

// overHTTP returns the configured address of this host.
func (a *app) overHTTP(tokenFile string) (clientServer, error) {
	cfg, err := a.loadConfig()
	if err != nil {
		return clientServer{}, err
	}
	stdio := "a client can start the host itself: " + a.command("connect CLIENT")
	if cfg.Listen == "" {
		return clientServer{}, &hintError{errors.New(`this host is not reached over HTTP: server.listen is ""`), stdio}
	}
	if _, port, err := net.SplitHostPort(cfg.Listen); err != nil || port == "0" {
		return clientServer{}, &hintError{fmt.Errorf("server.listen is %q, so the host takes another port at each start; set a fixed port", cfg.Listen), stdio}
	}
	var token string
	if tokenFile != "" {
		token, err = a.agentToken(cfg, tokenFile)
	} else {
		token, err = daemon.AgentToken(cfg.StateDir)
	}
	if err != nil {
		return clientServer{}, err
	}
	return clientServer{url: mcpURL(cfg.Listen), token: token}, nil
}

// agentToken returns the secret in a file if it belongs to a configured token of an agent. Any
// other secret, such as the approver's key, must not reach a client.
func (a *app) agentToken(cfg *config.Config, file string) (string, error) {
	secret, err := auth.ReadToken(file)
	if err != nil {
		return "", err
	}
	tokens, err := auth.NewTokens(cfg.Tokens)
	if err != nil {
		return "", err
	}
	caller, ok := tokens.Lookup(secret)
	switch {
	case !ok:
		return "", &hintError{fmt.Errorf("the token file %s has no token of this configuration", file), a.command("token new NAME") + " creates one and prints its configuration block"}
	case !caller.Roles.Has(auth.Agent):
		return "", &hintError{fmt.Errorf("the token %q of the file %s does not have the role agent, which a client needs", caller.Token, file), "use the file of an agent's token; " + a.command("token new NAME") + " makes one"}
	}
	return secret, nil
}

// mcpURL returns the URL at which a host that listens on an address serves MCP.
func mcpURL(address string) string { return "http://" + address + "/mcp" }

// overStdio is a process of this program that the client starts.
func (a *app) overStdio(tokenFile string) (clientServer, error) {
	program, err := os.Executable()
	if err != nil {
		return clientServer{}, fmt.Errorf("find this program: %w", err)
	}
	if _, err := a.stateDir(); err != nil { // the client would get a less helpful error later
		return clientServer{}, err
	}
	path, err := config.Find(a.configPath, nil)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return clientServer{}, err
	}
	args := []string{"mcp", "--config", path}
	if tokenFile != "" {
		cfg, err := a.loadConfig()
		if err != nil {
			return clientServer{}, err
		}
		if _, err := a.agentToken(cfg, tokenFile); err != nil {
			return clientServer{}, err
		}
		if tokenFile, err = filepath.Abs(tokenFile); err != nil {
			return clientServer{}, err
		}
		args = append(args, "--token-file", tokenFile)
	}
	return clientServer{command: program, args: args}, nil
}

// either joins words with "or".
func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// mcpClient is a program that uses MCP.
type mcpClient struct {
	name  string
	where string // where the text belongs
	http  string // where the text for HTTP belongs; "" means the same place
	text  func(name string, s clientServer) (string, error)
}

// mcpClients returns the programs that connect knows.
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

// clientServer describes how a client reaches a host: at an address with a token, or by
// starting a command.
type clientServer struct {
	url, token string
	command    string
	args       []string
}

// authorization returns the header with the token.
func (s clientServer) authorization() string { return "Bearer " + s.token }

// clientEntry is a server in the JSON configuration of clients.
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

// claudeCode returns the command that adds a server to Claude Code. For HTTP it returns the
// content of a file instead, because every account can read a command line, which so must not
// contain a token.
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

// codex returns the table for a server in the configuration of Codex.
func codex(name string, s clientServer) (string, error) {
	if s.command != "" {
		return fmt.Sprintf("[mcp_servers.%s]\ncommand = %s\nargs = %s", name, inTOML(s.command), inTOML(s.args)), nil
	}
	return fmt.Sprintf("[mcp_servers.%s]\nurl = %s\nhttp_headers = { Authorization = %s }", name, inTOML(s.url), inTOML(s.authorization())), nil
}

// inTOML returns a string or a list of strings as TOML. Their JSON is valid TOML.
func inTOML(v any) string {
	text, _ := json.Marshal(v) // strings always encode
	return string(text)
}
