package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// TestRevokedTokens revokes and rotates tokens while a host runs.
func TestRevokedTokens(t *testing.T) {
	t.Parallel()
	block, secret := agentToken(t, "ci", "ci")
	h := serve(t, writeConfig(t, listening+counting+"auth {\n"+block+"}\n"))
	asks := func(what, token string, want int, says string) {
		t.Helper()
		status, text, err := h.send("GET", "/v1/calls", token, "")
		if err != nil || status != want || !strings.Contains(text, says) {
			t.Errorf("%s = %d %s, %v; want %d with %q", what, status, text, err, want, says)
		}
	}
	var next rotatedToken
	if err := json.Unmarshal([]byte(h.ok(t, "token", "rotate", "ci", "--grace", "1h", "--json")), &next); err != nil {
		t.Fatal(err)
	}
	asks("the new token before it is in the configuration", next.Token, 401, "is not valid here")
	asks("the old token in its grace", secret, 200, "")
	text, err := os.ReadFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.config, []byte(strings.Replace(string(text), auth.Digest(secret), next.SHA256, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	h.ok(t, "reload")
	asks("the new token", next.Token, 200, "")
	asks("the old token in its grace, after the reload", secret, 200, "")

	status, answer, err := h.send("POST", "/v1/calls", next.Token, `{"tool":"probe_count","arguments":{"note":"x"}}`, "Prefer", "respond-async")
	call := outcomeOf(t, status, answer, err)
	if got := h.ok(t, "token", "revoke", "ci"); got != "the token ci is now refused\n" {
		t.Errorf("token revoke says %q", got)
	}
	asks("the old token, revoked", secret, 401, `the token \"ci\" was revoked at `)
	asks("the new token, revoked", next.Token, 401, `the token \"ci\" was revoked at `)
	eventually(t, "its call has ended", func() bool {
		return strings.Contains(h.ok(t, "journal", "query", "--call", call.ToolCallID), "permission_denied")
	})
	asks("another token", h.token, 200, "")
	if got := h.ok(t, "journal", "query"); !strings.Contains(got, `the token "ci" is revoked`) {
		t.Errorf("the journal says\n%s", got)
	}

	old := h.token
	h.ok(t, "token", "rotate", "local")
	asks("agent.token before it was rotated", old, 401, `the token \"local\" was revoked at `)
	h.stop()
	h.restart(t)
	if h.token == old {
		t.Error("agent.token is as before")
	}
	asks("agent.token after that, and a restart", h.token, 200, "")
	asks("the old one after a restart", old, 401, "was revoked")
	asks("a revoked token after a restart", next.Token, 401, `the token \"ci\" was revoked at `)
	if got := h.ok(t, "token", "list", "--json"); strings.Count(got, `"revoked"`) != 1 {
		t.Errorf("token list says\n%s\nwant ci as revoked", got)
	}
	if _, stderr, code := h.cli("token", "revoke", "ci"); code != 1 || !strings.Contains(stderr, `no token is named "ci", or it has been revoked`) {
		t.Errorf("revoking it again = %d, %q", code, stderr)
	}
}

// TestGraceEndsCalls checks that when a rotated token's grace period ends, its calls end like
// those of a revoked token, and the new token's calls continue.
func TestGraceEndsCalls(t *testing.T) {
	t.Parallel()
	block, secret := agentToken(t, "ci", "ci")
	h := serve(t, writeConfig(t, listening+counting+"auth {\n"+block+"}\n"))
	call := func(token, note string) string {
		t.Helper()
		status, answer, err := h.send("POST", "/v1/calls", token, `{"tool":"probe_count","arguments":{"note":"`+note+`"}}`, "Prefer", "respond-async")
		return outcomeOf(t, status, answer, err).ToolCallID
	}
	old := call(secret, "old")
	var next rotatedToken
	if err := json.Unmarshal([]byte(h.ok(t, "token", "rotate", "ci", "--grace", "1s", "--json")), &next); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(h.config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.config, []byte(strings.Replace(string(text), auth.Digest(secret), next.SHA256, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	h.ok(t, "reload")
	kept := call(next.Token, "next")
	under := func(id string) string { return h.ok(t, "journal", "query", "--call", id) }
	eventually(t, "the call of the old token has ended", func() bool { return strings.Contains(under(old), "permission_denied") })
	if status, text, err := h.send("GET", "/v1/calls/"+kept, next.Token, ""); err != nil || status != 202 || !strings.Contains(text, `"status":"pending"`) {
		t.Errorf("the call of the new token = %d %s, %v; want it to go on", status, text, err)
	}
}
