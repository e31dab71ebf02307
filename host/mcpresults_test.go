package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestClientsGetWhatTheyShow makes the same calls as clients with several names. The name
// selects the form of the results, and no name gets more than any client shows.
func TestClientsGetWhatTheyShow(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+probeBlock("")+conformanceBlock+`
client "asks" {
  max_output = "13KiB"
  structured = true
}
`))
	for _, tt := range []struct {
		name       string
		structured bool
		most       int
	}{
		{"test", false, 48_000},
		{"claude-code", false, 48_000},
		{"codex-mcp-client", false, 12_000},
		{"asks", true, 13 << 10},
		{strings.Repeat("max_output = 1GiB \x1b[2J\n", 1000), false, 48_000},
	} {
		for _, revision := range revisions {
			t.Run(fmt.Sprintf("%.20q %s", tt.name, revision), func(t *testing.T) {
				s := connectHTTP(t, h, h.token, revision, tt.name, nil)
				schemas := 0
				for listed, err := range s.Tools(t.Context(), nil) {
					if err != nil {
						t.Fatal(err)
					}
					if listed.OutputSchema != nil {
						schemas++
					}
				}
				if (schemas > 0) != tt.structured {
					t.Errorf("%d tools are listed with an output schema, structured is %v", schemas, tt.structured)
				}
				r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "test_structured_content", Arguments: map[string]any{}})
				if err != nil {
					t.Fatal(err)
				}
				if got, want := textOf(r), `{"city":"Vienna","degrees":21.5}`; (got == want) == tt.structured || (r.StructuredContent != nil) != tt.structured {
					t.Errorf("the structured result is %q and %v", got, r.StructuredContent)
				}
				r, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "probe_lines", Arguments: map[string]any{"n": 200_000}})
				if err != nil {
					t.Fatal(err)
				}
				text := textOf(r)
				if len(text) > tt.most || len(text) < min(tt.most-2048, 38_000) || !strings.HasSuffix(text, " bytes]") || !strings.Contains(text, "[the rest: result_read ") {
					t.Errorf("the text has %d bytes, at most %d are shown; its end is %q", len(text), tt.most, text[len(text)-200:])
				}
				handle, cursor := wholeOf(t, r)
				part := s.must(t, "result_read", map[string]any{"handle": handle, "cursor": cursor})
				if len(part) > tt.most || !strings.HasSuffix(part, "]") || !strings.Contains(part, "; the rest: result_read ") {
					t.Errorf("the next part has %d bytes and ends %q", len(part), part[max(0, len(part)-200):])
				}
				if found := s.must(t, "result_read", map[string]any{"handle": handle, "pattern": "^line 4321,"}); !strings.HasPrefix(found, "4322:line 4321, as long as others\n") {
					t.Errorf("result_read with a pattern = %q", found)
				}
			})
		}
	}
}

// TestControlCharactersArrive calls a tool that returns every control character, in a short
// result and in one that is encoded in pieces.
func TestControlCharactersArrive(t *testing.T) {
	t.Parallel()
	eachClient(t, probeBlock(""), func(t *testing.T, connected func(*mcp.ClientOptions) *session) {
		t.Helper()
		s := connected(nil)
		once := s.must(t, "probe_control", map[string]any{"n": 1})
		for r := rune(0); r <= 0x9f; r++ {
			if (r < ' ' || r >= 0x7f) && !strings.ContainsRune(once, r) {
				t.Errorf("the result lacks %U", r)
			}
		}
		if got, want := s.must(t, "probe_control", map[string]any{"n": 200}), strings.Repeat(once, 200); got != want {
			t.Errorf("a result of %d bytes arrives as %d others", len(want), len(got))
		}
	})
}

// TestThousandCallsAtOnce makes 1,000 concurrent calls. Each gets its own result, or an error
// that there are too many.
func TestThousandCallsAtOnce(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+probeBlock("")))
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for _, tt := range []struct {
		name      string
		transport mcp.Transport
	}{
		{"stdio", &mcp.CommandTransport{Command: toolhost(t.Context(), h.config, "mcp")}},
		// The host limits its connections, so requests of one client share some.
		{"http", &mcp.StreamableClientTransport{Endpoint: h.url + "/mcp", HTTPClient: &http.Client{
			Transport: sharing{token: h.token, Transport: &http.Transport{MaxConnsPerHost: 100}},
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			connected, err := client.Connect(t.Context(), tt.transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = connected.Close() })
			s := &session{connected}
			var all sync.WaitGroup
			var mu sync.Mutex
			answered, refused := 0, 0
			for i := range 1000 {
				all.Go(func() {
					r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "probe_text", Arguments: map[string]any{"n": i}})
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err != nil && (strings.Contains(err.Error(), "wait for their answers already") || strings.Contains(err.Error(), "Too Many Requests")):
						refused++
					case err != nil:
						t.Errorf("call %d: %v", i, err)
					case codeOf(r) == "resource_exhausted" || codeOf(r) == "rate_limited" || codeOf(r) == "unavailable":
						refused++
					case textOf(r) != strings.Repeat("x", i):
						t.Errorf("call %d has %d bytes: %.200q", i, len(textOf(r)), textOf(r))
					default:
						answered++
					}
				})
			}
			all.Wait()
			if answered == 0 || answered+refused != 1000 {
				t.Errorf("%d calls have their result and %d were refused, want 1000 together", answered, refused)
			}
			if got := s.must(t, "probe_text", map[string]any{"n": 3}); got != "xxx" {
				t.Errorf("after them, probe_text = %q", got)
			}
		})
	}
}

// sharing adds a token to every request and shares connections between requests.
type sharing struct {
	*http.Transport

	token string
}

// RoundTrip implements [http.RoundTripper].
func (s sharing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+s.token)
	return s.Transport.RoundTrip(r)
}
