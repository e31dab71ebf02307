package main

import (
	"strings"
	"testing"
)

// TestNoNetworkIsSaid runs a command that needs a network in the default sandbox, which has none.
func TestNoNetworkIsSaid(t *testing.T) {
	t.Parallel()
	h := serveShippedWith(t, func(text string) string {
		return strings.Replace(text, `"ls", "cat",`, `"ls", "cat", "git ls-remote *",`, 1)
	})
	outcome := h.post(t, "shell_exec", map[string]any{"command": "git ls-remote https://nowhere.invalid/a"})
	if outcome.Error == nil || !strings.HasPrefix(outcome.Error.Hint, "commands have no network here") {
		t.Errorf("git ls-remote = %s, want a hint about the network", asJSON(outcome))
	}
	if outcome := h.post(t, "shell_exec", map[string]any{"command": "cat none"}); outcome.Error == nil || outcome.Error.Hint != "" {
		t.Errorf("cat none = %s, want no hint", asJSON(outcome))
	}
}
