package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/state/journal"
)

const (
	// testClient is the name that the client gives itself.
	testClient = "test-client"
	// askers is the secret of a token whose client may ask its user for approvals.
	askers    = "secret-of-the-token-asker"
	impatient = "approvals {\n  patience = \"0s\"\n}\n"
)

var (
	asker = fmt.Sprintf("  token \"asker\" {\n    sha256 = %q\n    user = %q\n    roles = [\"agent\"]\n    elicitation = true\n  }\n",
		auth.Digest(askers), auth.LocalUser(""))
	elicitation = "auth {\n" + asker + "}\n"
)

// connectAsker connects a client that may ask its user for approvals.
func connectAsker(t *testing.T, h *host, revision string, opts *mcp.ClientOptions) *session {
	t.Helper()
	return connectHTTP(t, h, askers, revision, testClient, opts)
}

// connector connects a client of a revision to a host.
type connector func(t *testing.T, h *host, revision string, opts *mcp.ClientOptions) *session

// transports are the ways an MCP client can connect to a host.
var transports = map[string]connector{
	"stdio": func(t *testing.T, h *host, revision string, opts *mcp.ClientOptions) *session {
		t.Helper()
		return connectAs(t, toolhost(context.WithoutCancel(t.Context()), h.config, "mcp"), revision, testClient, opts)
	},
	"http": func(t *testing.T, h *host, revision string, opts *mcp.ClientOptions) *session {
		t.Helper()
		return connectHTTP(t, h, h.token, revision, testClient, opts)
	},
}

// answering returns the options of a client whose user answers every form alike.
func answering(answer *mcp.ElicitResult) *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return answer, nil
	}}
}

// end is one way for a write that needs approval to end.
type end struct {
	name string
	// config is added to the configuration of every host.
	config string
	// opts are the client's options.
	opts *mcp.ClientOptions
	// write makes the call and decides on it.
	write func(t *testing.T, h *host, s *session) (*mcp.CallToolResult, error)
	// want is the text that the model reads, and file the content that is written; "" means
	// none.
	want, code, file string
	canceled         bool
}

func plainWrite(t *testing.T, _ *host, s *session) (*mcp.CallToolResult, error) {
	t.Helper()
	return s.CallTool(t.Context(), writeOf("hello\n"))
}

func ends() []end {
	return []end{
		{
			name: "approved", config: elicitation,
			opts:  answering(&mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}),
			write: plainWrite, want: "Wrote 6 bytes to a.txt", file: "hello\n",
		},
		{
			name: "rejected", config: elicitation,
			opts:  answering(&mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "reject", "note": "wrong file"}}),
			write: plainWrite, want: "Tool execution failed: User rejected the operation\nHint: wrong file", code: "rejected",
		},
		{
			name: "out of band",
			write: func(t *testing.T, h *host, s *session) (*mcp.CallToolResult, error) {
				t.Helper()
				ended := make(chan struct{})
				go func() { // ends with the decision
					defer close(ended)
					h.answer(t, "approve", h.open(t, 1)[0].ID)
				}()
				defer func() { <-ended }()
				return plainWrite(t, h, s)
			},
			want: "Wrote 6 bytes to a.txt", file: "hello\n",
		},
		{
			name: "pending, then collected", config: impatient,
			write: func(t *testing.T, h *host, s *session) (*mcp.CallToolResult, error) {
				t.Helper()
				r, err := plainWrite(t, h, s)
				if err != nil {
					return nil, err
				}
				id := h.open(t, 1)[0].ID
				if code, hint := codeOf(r), fmt.Sprintf(`call_wait {"id":%q}`, id); code != "pending_approval" || !strings.Contains(textOf(r), hint) {
					t.Fatalf("the model reads %q with code %s, want %q", textOf(r), code, hint)
				}
				h.answer(t, "approve", id)
				eventually(t, "the result can be collected", func() bool {
					r, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "approval_wait", Arguments: map[string]any{"id": id}})
					return err != nil || codeOf(r) != "pending_approval"
				})
				return r, err
			},
			want: "Wrote 6 bytes to a.txt", file: "hello\n",
		},
		{
			name: "canceled",
			write: func(t *testing.T, h *host, s *session) (*mcp.CallToolResult, error) {
				t.Helper()
				ctx, cancel := context.WithCancel(t.Context())
				go func() { // ends with the call
					h.open(t, 1)
					cancel()
				}()
				r, err := s.CallTool(ctx, writeOf("hello\n"))
				// Over HTTP without sessions, a client can only drop its request, which
				// cancels nothing.
				eventually(t, "the call has ended", func() bool {
					var calls []operation.Info
					if err := json.Unmarshal([]byte(h.must(t, http.StatusOK, "GET", "/v1/calls", h.token, "")), &calls); err != nil {
						t.Fatal(err)
					}
					i := slices.IndexFunc(calls, func(o operation.Info) bool { return o.State != operation.Done })
					if i >= 0 && calls[i].Left {
						h.must(t, http.StatusOK, "POST", "/v1/calls/"+calls[i].ID+"/cancel", h.token, "")
					}
					return i < 0
				})
				h.open(t, 0)
				return r, err
			},
			canceled: true,
		},
	}
}

// TestMatrix makes the same write from clients of each transport and revision, and ends it in
// each way. The journal has the same rows for all clients.
func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, end := range ends() {
		t.Run(end.name, func(t *testing.T) {
			h := serve(t, writeConfig(t, listening+writing+end.config))
			var first []journal.Record
			ways := transports
			if end.config == elicitation { // needs a token, which only HTTP has
				ways = map[string]connector{"http": connectAsker}
			}
			for transport, connect := range ways {
				for _, revision := range revisions {
					at := transport + " " + revision
					seen := len(h.journal(t, "--limit", "1000"))
					r, err := end.write(t, h, connect(t, h, revision, end.opts))
					switch {
					case end.canceled && err == nil:
						t.Errorf("%s: the canceled call came to %q", at, textOf(r))
					case end.canceled:
					case err != nil:
						t.Errorf("%s: %v", at, err)
					case textOf(r) != end.want || codeOf(r) != end.code || r.IsError != (end.code != ""):
						t.Errorf("%s: the model reads %q with code %q, want %q with %q", at, textOf(r), codeOf(r), end.want, end.code)
					}
					if got := h.file("a.txt"); got != end.file {
						t.Errorf("%s: the file holds %q, want %q", at, got, end.file)
					}
					if err := removeFile(h, "a.txt"); err != nil && end.file != "" {
						t.Fatal(err)
					}
					var rows []journal.Record
					eventually(t, "the end of the call is written down", func() bool {
						rows = ofTool(plain(h.journal(t, "--limit", "1000")[seen:]), "write_file")
						return len(rows) > 0 && rows[len(rows)-1].Kind == journal.End
					})
					if first == nil {
						first = rows
					}
					if diff := cmp.Diff(first, rows); diff != "" {
						t.Errorf("%s: the rows differ from those of the first client (-first +this):\n%s", at, diff)
					}
				}
			}
		})
	}
}

func ofTool(rows []journal.Record, name string) []journal.Record {
	var of []journal.Record
	for _, r := range rows {
		if r.Tool == name {
			of = append(of, r)
		}
	}
	return of
}
