package main

import (
	"net"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
	"github.com/toolhost/toolhost/sdk/tool"
)

// TestPortInUse starts a host on a port that another program uses. The host says what to do
// and releases the state directory.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := writeConfig(t, fsBlock+`server { listen = "`+l.Addr().String()+`" }`)
	_, stderr, code := cli(config, "serve")
	for _, want := range []string{l.Addr().String(), "address already in use", `(host.test) of account `, ` listens there`, "hint: ", "serve --port auto --config ", `listen = "` + nextPort(l.Addr().String()) + `"`} {
		if code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("toolhost serve exits with %d and says %q, want %q", code, stderr, want)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	h := serve(t, config) // the control: the port is free
	if h.url != "http://"+l.Addr().String() || h.mcp != h.url+"/mcp" {
		t.Errorf("the host is reached at %s and %s, want %s", h.url, h.mcp, l.Addr())
	}
}

// TestNextPort checks that clients never receive port 0, which changes each time.
func TestNextPort(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:7780": "127.0.0.1:7781", "[::1]:1": "[::1]:2", "127.0.0.1:65535": "127.0.0.1:65534",
	} {
		if got := nextPort(address); got != want {
			t.Errorf("nextPort(%q) = %q, want %q", address, got, want)
		}
	}
}

// TestToolsToTry leaves out what leaves the machine, and what is about other calls.
func TestToolsToTry(t *testing.T) {
	t.Parallel()
	got := toTry([]httpapi.Tool{{Name: "call_wait", Plugin: "toolhost"}, {Name: "upper", Plugin: "upper"}, {Name: "web_fetch", Plugin: "web", OpenWorld: true}})
	if len(got) != 1 || got[0].Name != "upper" {
		t.Errorf("toTry = %+v, want upper alone", got)
	}
}

// TestSimplestCall chooses the call with the fewest arguments.
func TestSimplestCall(t *testing.T) {
	t.Parallel()
	schema := func(required string) string {
		return `{"properties": {"a": {"type": "string"}, "b": {"type": "string"}, "n": {"type": "integer"}}, "required": [` + required + `]}`
	}
	for _, tt := range []struct {
		name    string
		schemas []string // a space at the end marks a destructive tool
		want    string
	}{
		{"none needed before one", []string{schema(`"a"`), schema(``)}, "t1"},
		{"one text", []string{schema(`"a", "b"`), schema(`"b"`)}, "t1 b=example"},
		{"a number cannot be guessed", []string{schema(`"n"`)}, ""},
		{"two are too many", []string{schema(`"a", "b"`)}, ""},
		{"no schema", []string{`not JSON`}, ""},
		{"the first that fits", []string{schema(``), schema(``)}, "t0"},
		{"what may destroy comes last", []string{schema(``) + " ", schema(`"a"`)}, "t1 a=example"},
		{"unless there is nothing else", []string{schema(`"a"`) + " "}, "t0 a=example"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tools []httpapi.Tool
			for i, s := range tt.schemas {
				tools = append(tools, httpapi.Tool{Name: "t" + string(rune('0'+i)), Tier: tool.ReadOnly, InputSchema: []byte(s), Destructive: strings.HasSuffix(s, " ")})
			}
			got := strings.Join(simplest(tools, []int{0, 1}, func(httpapi.Tool, []string) bool { return true }), " ")
			if got != tt.want {
				t.Errorf("simplest = %q, want %q", got, tt.want)
			}
		})
	}
}

// TestGreetingOfTokens: where the host's own token is not valid, the greeting says how to make one.
func TestGreetingOfTokens(t *testing.T) {
	t.Parallel()
	a := &app{}
	for url, want := range map[string]string{
		"http://127.0.0.1:7780": "  token    state/agent.token\n", "https://localhost:7780": "  token    state/agent.token\n", "https://[::1]:7780": "  token    state/agent.token\n",
		"https://tools.example.com:7780": "  token    toolhost token new NAME --account any # agent.token is for loopback addresses\n",
		"http://10.0.0.1:7780":           "  token    toolhost token new NAME --account any #",
	} {
		if got := a.greeting(serving{URL: url, MCP: url + mcpPath, Token: "state/agent.token"}, nil); !strings.Contains(got, want) {
			t.Errorf("the greeting of %s is\n%s\nwant %q", url, got, want)
		}
	}
}
