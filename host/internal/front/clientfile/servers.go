package clientfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Listed is an MCP server in the file of a client.
type Listed struct {
	// Name is the client's name for it.
	Name string
	// File is where it stands.
	File string
	// Command and Args start it, in the directory Dir; URL is its address. One of Command and URL is
	// set.
	Command string
	Args    []string
	Dir     string
	URL     string
	// Env are variables of its environment, Headers those of requests to URL.
	Env, Headers map[string]string
	// Disabled is set if the client does not start it.
	Disabled bool
	// Wrong is why it cannot be used; "" if it can.
	Wrong string
}

// maxServers bounds the servers of one file.
const maxServers = 200

// Servers returns the MCP servers that a client uses in a place, and the files that it keeps them in.
// If two have a name, the one that is nearer to the place counts, as it does for the client.
func Servers(client string, p Place) (servers []Listed, files []string, err error) {
	places, err := listsOf(client, p)
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, place := range places {
		found, err := serversIn(place)
		if err != nil {
			return nil, nil, err
		}
		if found == nil {
			continue
		}
		if !slices.Contains(files, place.file) {
			files = append(files, place.file)
		}
		for _, s := range found {
			if !seen[s.Name] {
				seen[s.Name] = true
				servers = append(servers, s)
			}
		}
	}
	return servers, files, nil
}

// ServersIn returns the MCP servers in a file of any client that is known, or of one that uses the
// same names.
func ServersIn(file string) ([]Listed, error) {
	for _, path := range [][]string{{"mcpServers"}, {"servers"}, {"mcp_servers"}, {"mcp", "servers"}} {
		found, err := serversIn(listPlace{file: file, path: path, must: true})
		if err != nil || found != nil {
			return found, err
		}
	}
	return nil, fmt.Errorf("%s has no list of MCP servers: expected mcpServers or servers in JSON, or mcp_servers in TOML", file)
}

// listPlace is where a client keeps a list of servers: a path of names in a file.
type listPlace struct {
	file string
	path []string
	must bool // the file must exist
}

// listsOf returns where a client keeps its lists, the nearest one first.
func listsOf(client string, p Place) ([]listPlace, error) {
	switch client {
	case "claude-code":
		file, err := inHome("CLAUDE_CONFIG_DIR", ".claude.json")
		return []listPlace{
			{file: file, path: []string{"projects", p.repository(), "mcpServers"}},
			{file: filepath.Join(p.project(), ".mcp.json"), path: []string{"mcpServers"}},
			{file: file, path: []string{"mcpServers"}},
		}, err
	case "cursor":
		file, err := inHome("", ".cursor/mcp.json")
		return []listPlace{{file: filepath.Join(p.project(), ".cursor/mcp.json"), path: []string{"mcpServers"}}, {file: file, path: []string{"mcpServers"}}}, err
	case "vscode":
		return []listPlace{{file: filepath.Join(p.project(), ".vscode/mcp.json"), path: []string{"servers"}}}, nil
	case "codex":
		file, err := inHome("CODEX_HOME", ".codex/config.toml")
		return []listPlace{{file: file, path: []string{"mcp_servers"}}}, err
	}
	return nil, fmt.Errorf("no list of servers is known of %s", client)
}

// serversIn returns the servers of one list, sorted by name; nil if there is no such list.
func serversIn(place listPlace) ([]Listed, error) {
	text, err := readFile(place.file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !place.must:
		return nil, nil
	case err != nil:
		return nil, err
	}
	var root any
	if filepath.Ext(place.file) == ".toml" {
		root, err = parseTOML(text)
	} else {
		root, _, err = parseJSON([]byte(strings.TrimPrefix(string(text), bom) + "\n")) // the parser wants an end of a last comment
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place.file, err)
	}
	for _, name := range place.path {
		object, ok := root.(map[string]any)
		if !ok {
			return nil, nil
		}
		root = object[name]
	}
	entries, ok := root.(map[string]any)
	if !ok {
		return nil, nil
	}
	if len(entries) > maxServers {
		return nil, fmt.Errorf("%s has %d servers, more than %d", place.file, len(entries), maxServers)
	}
	list := []Listed{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		list = append(list, listed(name, place.file, entries[name]))
	}
	return list, nil
}

func readFile(path string) ([]byte, error) {
	change := &Change{Path: path, target: path}
	if err := change.read(); err != nil {
		return nil, err
	}
	if !change.exists {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return change.old, nil
}

// serverEntry is an entry of a list, by the names of all known clients.
type serverEntry struct {
	Command     string            `json:"command"`
	Args        []string          `json:"args"`
	Cwd         string            `json:"cwd"`
	Env         map[string]string `json:"env"`
	URL         string            `json:"url"`
	ServerURL   string            `json:"serverUrl"`
	HTTPURL     string            `json:"httpUrl"`
	Headers     map[string]string `json:"headers"`
	HTTPHeaders map[string]string `json:"http_headers"`
	BearerEnv   string            `json:"bearer_token_env_var"`
	Type        string            `json:"type"`
	Disabled    bool              `json:"disabled"`
	Enabled     *bool             `json:"enabled"`
}

// listed reads one entry.
func listed(name, file string, value any) Listed {
	s := Listed{Name: name, File: file}
	text, err := json.Marshal(value)
	var e serverEntry
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		s.Wrong = "its entry is not understood: " + err.Error()
		return s
	}
	s.Command, s.Args, s.Dir, s.Env = e.Command, e.Args, e.Cwd, e.Env
	for _, url := range []string{e.HTTPURL, e.ServerURL, e.URL} {
		if url != "" {
			s.URL = url
		}
	}
	s.Headers = maps.Clone(e.Headers)
	if len(e.HTTPHeaders) > 0 {
		s.Headers = maps.Clone(e.HTTPHeaders)
	}
	if e.BearerEnv != "" {
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers["Authorization"] = "Bearer ${" + e.BearerEnv + "}"
	}
	s.Disabled = e.Disabled || e.Enabled != nil && !*e.Enabled
	switch {
	case s.Command == "" && s.URL == "":
		s.Wrong = "it has neither a command nor a URL"
	case s.Command != "" && s.URL != "":
		s.Wrong = "it has a command and a URL"
	case e.Type == "sse":
		s.Wrong = "it speaks the old HTTP+SSE transport; ask its maker for a streamable HTTP address"
	}
	return s
}

// IsHost reports whether a listed server is a toolhost: it is started by a program of that name with
// the word mcp, or reached by the given URL.
func (s Listed) IsHost(url string) bool {
	return s.URL != "" && s.URL == url || strings.HasPrefix(filepath.Base(s.Command), "toolhost") && slices.Contains(s.Args, "mcp")
}
