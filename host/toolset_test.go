package main

import (
	"net/http"
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
