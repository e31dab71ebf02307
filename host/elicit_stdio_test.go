package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// writeToken writes a secret to a new file and returns its path.
func writeToken(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withTokenFile connects clients over standard input and output, with a token.
func withTokenFile(secret string) connector {
	return func(t *testing.T, h *host, revision string, opts *mcp.ClientOptions) *session {
		t.Helper()
		cmd := toolhost(context.WithoutCancel(t.Context()), h.config, "mcp", "--token-file", writeToken(t, secret))
		return connectAs(t, cmd, revision, testClient, opts)
	}
}

// approving returns the options of a client whose user approves, and a counter of approvals.
func approving() (opts *mcp.ClientOptions, asked *atomic.Int32) {
	asked = &atomic.Int32{}
	return &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked.Add(1)
		return approveForm(), nil
	}}, asked
}

// TestElicitationOverStdio approves through clients of `toolhost mcp` with a token: next to a
// running host, while that host is replaced, and in a process that is the host itself. The calls
// belong to the token's user.
func TestElicitationOverStdio(t *testing.T) {
	t.Parallel()
	block, secret := agentToken(t, "adas-client", "ada")
	block = strings.Replace(block, "roles ", "elicitation = true\n    roles ", 1)
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			h := serve(t, writeConfig(t, listening+writing+impatient+"auth {\n"+block+"}\n"))
			opts, asked := approving()
			s := withTokenFile(secret)(t, h, revision, opts)
			approves := func(where string) {
				t.Helper()
				before := asked.Load()
				if r, err := s.CallTool(t.Context(), writeOf(where)); err != nil || r.IsError {
					t.Fatalf("%s: the call came to %+v, %v", where, r, err)
				}
				if got := asked.Load() - before; got != 1 || h.file("a.txt") != where {
					t.Errorf("%s: the user was asked %d times, and the file has %q", where, got, h.file("a.txt"))
				}
			}
			approves("with a host")
			h.stop()
			approves("as the host")
			h.restart(t)
			approves("with the next host")
			for _, row := range h.journal(t, "--tool", "write_file") {
				if row.User != "ada" || row.ApprovedBy != "user" || row.Via != "elicitation" {
					t.Errorf("row %d of the journal says %+v, want a call of ada, approved over elicitation", row.Seq, row)
				}
			}
		})
	}
}

// TestElicitationIsTakenBack takes elicitation, and then the token, away from connected
// clients of `toolhost mcp`.
func TestElicitationIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			h := serve(t, writeConfig(t, listening+writing+impatient+elicitation))
			opts, asked := approving()
			s := withTokenFile(askers)(t, h, revision, opts)
			if r, err := s.CallTool(t.Context(), writeOf("one")); err != nil || r.IsError || asked.Load() != 1 {
				t.Fatalf("control: the call came to %+v, %v, after %d questions", r, err, asked.Load())
			}
			config := readFile(t, h.config)
			for _, change := range []string{strings.Replace(config, "elicitation = true", "", 1), strings.Replace(config, elicitation, "", 1)} {
				if change == config {
					t.Fatal("the configuration is as before")
				}
				if err := os.WriteFile(h.config, []byte(change), 0o600); err != nil {
					t.Fatal(err)
				}
				h.ok(t, "reload")
				r, err := s.CallTool(t.Context(), writeOf(change))
				if err == nil && codeOf(r) != "pending_approval" || asked.Load() != 1 || h.file("a.txt") != "one" {
					t.Errorf("the call came to %+v, %v, after %d questions, and the file has %q", r, err, asked.Load(), h.file("a.txt"))
				}
				if taken := !strings.Contains(change, "asker"); (err != nil) != taken {
					t.Errorf("the call came to %+v, %v, want an error: %t", r, err, taken)
				}
			}
		})
	}
}

// TestTokenFilesThatDoNotCount starts `toolhost mcp` with invalid tokens: it exits, and serves
// nothing as the local user.
func TestTokenFilesThatDoNotCount(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+writing+elicitation))
	open := writeToken(t, askers)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, file, want string }{
		{"a mistyped token", writeToken(t, "th_"+strings.Repeat("A", 49)), "the token is mistyped"},
		{"an unknown secret", writeToken(t, "another-unknown-secret"), "the token is not valid here"},
		{"the agent's own", filepath.Join(h.stateDir, "agent.token"), ""},
		{"the approver's key", filepath.Join(h.stateDir, "approver.key"), "needs the role agent"},
		{"a file that others can read", open, "others can open"},
		{"no file", open + ".none", "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := h.cli("mcp", "--token-file", tt.file)
			if failed := code != 0; failed != (tt.want != "") || stdout != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("toolhost mcp exits with %d and says %q %q, want %q", code, stdout, stderr, tt.want)
			}
		})
	}
}
