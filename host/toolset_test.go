package main

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestToolsetLimitsWhatIsSeenAndCalled connects to a toolset's address, and with a token that
// has a toolset, over MCP and REST.
func TestToolsetLimitsWhatIsSeenAndCalled(t *testing.T) {
	t.Parallel()
	limited, secret := agentToken(t, "limited", "ada")
	limited = strings.Replace(limited, "roles", "toolset = \"readers\"\n    roles", 1)
	h := serve(t, writeConfig(t, listening+fsBlock+probeBlock("")+"auth {\n"+limited+`}
toolset "readers" { tools = ["read_*"] }
toolset "probes"  { tools = ["probe_text", "read_file"] }
`))
	for _, tt := range []struct {
		name, token, path string
		want              []string // the plugins' tools
	}{
		{"the address of one", h.token, "/mcp/readers", []string{"read_file", "read_files"}},
		{"a token with one", secret, "/mcp", []string{"read_file", "read_files"}},
		{"both", secret, "/mcp/probes", []string{"read_file"}},
	} {
		for _, revision := range revisions {
			t.Run(tt.name+" "+revision, func(t *testing.T) {
				client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
				s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
					Endpoint: h.url + tt.path, HTTPClient: &http.Client{Transport: bearer(tt.token)},
				}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				var got []string
				for listed, err := range s.Tools(t.Context(), nil) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, listed.Name)
				}
				for _, own := range []string{"result_read"} {
					if !slices.Contains(got, own) {
						t.Errorf("tools/list = %v, without the host's %s", got, own)
					}
				}
				got = slices.DeleteFunc(got, func(name string) bool {
					return !strings.HasPrefix(name, "read_") && !strings.HasPrefix(name, "probe_") && name != "write_file" && name != "list_directory"
				})
				if !slices.Equal(got, tt.want) {
					t.Errorf("tools/list has %v, want %v", got, tt.want)
				}
				for _, name := range []string{"list_directory", "list_files", "probe_lines"} {
					_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{}})
					if err == nil || !strings.Contains(err.Error(), "unknown tool") || strings.Contains(err.Error(), "did you mean list") {
						t.Errorf("a call of %s = %v, want that it is unknown", name, err)
					}
				}
				if got := (&session{s}).must(t, "read_file", map[string]any{"path": "hello.txt"}); got != "hello, world\n" {
					t.Errorf("read_file(hello.txt) = %q", got)
				}
			})
		}
	}
	status, text := (&rawClient{h: h, token: h.token}).ask(t, "POST", "{}")
	if status == http.StatusNotFound {
		t.Errorf("control: /mcp = %d %s", status, text)
	}
	for path, want := range map[string]int{"/v1/tools/read_file": 200, "/v1/tools/list_directory": 404, "/v1/tools/file_info": 404} {
		h.must(t, want, "GET", path, secret, "")
	}
	h.must(t, http.StatusNotFound, "POST", "/mcp/none", h.token, "{}")
	called := h.must(t, http.StatusOK, "POST", "/v1/calls", secret, `{"tool":"list_directory","arguments":{"path":"."}}`)
	if !strings.Contains(called, "unknown tool") {
		t.Errorf("over REST, list_directory = %s", called)
	}
}

// TestGroupsReachOpenSessions changes the groups of users while their clients are connected: their
// lists change at once, and calls of other tools are unknown.
func TestGroupsReachOpenSessions(t *testing.T) {
	t.Parallel()
	ada, adas := agentToken(t, "ada", "ada")
	bob, bobs := agentToken(t, "bob", "bob")
	const sets = "toolset \"readers\" { tools = [\"read_*\"] }\ntoolset \"probes\"  { tools = [\"probe_text\"] }\n"
	group := func(name, user, set string) string {
		return "group \"" + name + "\" {\n  users   = [\"" + user + "\"]\n  toolset = \"" + set + "\"\n}\n"
	}
	base := listening + fsBlock + probeBlock("") + "auth {\n" + ada + bob + "}\n" + sets
	h := serve(t, writeConfig(t, base+group("reading", "ada", "readers")))
	changed := make(chan struct{}, 10)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	})
	s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: h.url + "/mcp", HTTPClient: &http.Client{Transport: bearer(adas)},
	}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list := func() (names []string) {
		for listed, err := range s.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(listed.Name, "read_") || strings.HasPrefix(listed.Name, "probe_") || listed.Name == "list_directory" {
				names = append(names, listed.Name)
			}
		}
		return names
	}
	if got := list(); !slices.Equal(got, []string{"read_file", "read_files"}) {
		t.Errorf("the tools of a group: %v", got)
	}
	if got := h.must(t, http.StatusOK, "POST", "/v1/calls", bobs, `{"tool":"list_directory","arguments":{"path":"."}}`); !strings.Contains(got, "hello.txt") {
		t.Errorf("a user of no group calls list_directory: %s", got)
	}
	for _, tt := range []struct {
		groups string
		want   []string
	}{
		{group("reading", "ada", "readers") + group("probing", "*", "probes"), []string{"probe_text", "read_file", "read_files"}},
		{group("probing", "*", "probes"), []string{"probe_text"}},
	} {
		if err := os.WriteFile(h.config, []byte(settingsFor(base+tt.groups)), 0o600); err != nil {
			t.Fatal(err)
		}
		h.ok(t, "reload")
		<-changed
		if got := list(); !slices.Equal(got, tt.want) {
			t.Errorf("after a reload: %v, want %v", got, tt.want)
		}
	}
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": "hello.txt"}}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("a call of a tool that is no longer in a group = %v", err)
	}
	if got := h.must(t, http.StatusOK, "POST", "/v1/calls", bobs, `{"tool":"list_directory","arguments":{"path":"."}}`); !strings.Contains(got, "unknown tool") {
		t.Errorf("a user of another group calls list_directory: %s", got)
	}
}
