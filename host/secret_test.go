package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/internal/testprogram"
)

// TestSecretsOfUsers has two users set their values of a secret, and a tool that requests it get the
// caller's.
func TestSecretsOfUsers(t *testing.T) {
	t.Parallel()
	ada, adas := agentToken(t, "ada", "ada")
	bob, bobs := agentToken(t, "bob", "bob")
	lead, leads := agentToken(t, "lead", "ada")
	lead = strings.Replace(lead, `["agent"]`, `["approver"]`, 1)
	probe := strings.Replace(probeBlock(""), "claims = \"trust\"", "claims = \"trust\"\n  secrets = [\"key\", \"own\", \"printed\"]", 1)
	printer := filepath.Join(t.TempDir(), "printer")
	if err := os.Chmod(filepath.Dir(printer), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := testprogram.Write(printer, strings.NewReader("#!/bin/sh\necho \"$1 of HOME ${HOME-none}, TOOLHOST_CONFIG ${TOOLHOST_CONFIG-none}\"\n")); err != nil {
		t.Fatal(err)
	}
	config := writeConfig(t, listening+probe+"auth {\n"+ada+bob+lead+"}\n"+
		"secret \"key\" {\n  value = \"of-the-administrator\"\n}\nsecret \"own\" {\n  for = \"user\"\n}\n"+
		fmt.Sprintf("secret \"printed\" {\n  exec = [%q, \"of-the-command\"]\n}\n", printer))
	h := &host{config: config, dir: filepath.Dir(config), stateDir: filepath.Join(filepath.Dir(config), "state"), logLevel: "debug"}
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.stop)
	digest := func(token, name string) string {
		return h.must(t, http.StatusOK, "POST", "/v1/calls", token, asJSON(map[string]any{"tool": "probe_secret", "arguments": map[string]any{"name": name}}))
	}
	sum := func(value string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(value))) }

	if got := digest(adas, "own"); !strings.Contains(got, "the user has not set the secret own") || !strings.Contains(got, "secret set own") {
		t.Errorf("before it is set: %s", got)
	}
	const value = "the first line of ada's own\nand the second line of it"
	h.must(t, http.StatusForbidden, "PUT", "/v1/secrets/own", adas, asJSON(map[string]string{"value": "an agent's"}))
	h.must(t, http.StatusNotFound, "PUT", "/v1/secrets/key", leads, asJSON(map[string]string{"value": "another key"}))
	h.must(t, http.StatusOK, "PUT", "/v1/secrets/own", leads, asJSON(map[string]string{"value": value}))
	if got := digest(adas, "own"); !strings.Contains(got, sum(value)) {
		t.Errorf("ada's calls get %s", got)
	}
	if got := digest(bobs, "own"); !strings.Contains(got, "the user has not set the secret own") {
		t.Errorf("bob's calls get %s", got)
	}
	if got := digest(bobs, "key"); !strings.Contains(got, sum("of-the-administrator")) {
		t.Errorf("the administrator's secret: %s", got)
	}
	if got := digest(bobs, "printed"); !strings.Contains(got, sum("of-the-command of HOME "+os.Getenv("HOME")+", TOOLHOST_CONFIG none")) {
		t.Errorf("the secret that a command prints: %s", got)
	}
	for _, token := range []string{adas, bobs, leads} {
		if got := h.must(t, http.StatusOK, "GET", "/v1/secrets", token, ""); !strings.Contains(got, `"own"`) || strings.Contains(got, `"set"`) != (token != bobs) || strings.Contains(got, "second line") {
			t.Errorf("GET /v1/secrets = %s", got)
		}
	}
	h.must(t, http.StatusForbidden, "PUT", "/v1/secrets/own", leads, asJSON(map[string]string{"value": "another's", "user": "bob"}))
	h.must(t, http.StatusForbidden, "GET", "/v1/secrets?user=ada", bobs, "")
	h.must(t, http.StatusForbidden, "DELETE", "/v1/secrets/own?user=bob", leads, "")
	h.must(t, http.StatusOK, "DELETE", "/v1/secrets/own", leads, "")
	h.must(t, http.StatusNotFound, "DELETE", "/v1/secrets/own", leads, "")
	if got := digest(adas, "own"); !strings.Contains(got, "the user has not set the secret own") {
		t.Errorf("after it was removed: %s", got)
	}
	eventually(t, "the plugin's line in the log", func() bool {
		return strings.Contains(h.said(), "the secret is (hidden)") && strings.Contains(h.said(), "the secret is (secret own)")
	})
	if log := h.said(); strings.Contains(log, "ada's own") || strings.Contains(log, "the second line") || strings.Contains(log, "of-the-administrator") || strings.Contains(log, "of-the-command") {
		t.Errorf("the log has a value:\n%s", log)
	}
	if _, err := os.Stat(h.dir + "/state/secrets.key"); err != nil {
		t.Error(err)
	}
}
