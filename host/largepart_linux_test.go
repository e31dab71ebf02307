package main

import "testing"

// TestLargePartLeavesThePluginAlone checks that a part of a command with many or long words
// can end only that command: the plugin, which others use, keeps running.
func TestLargePartLeavesThePluginAlone(t *testing.T) {
	t.Parallel()
	h := serveShipped(t)
	for _, large := range []string{
		`x='a '; for i in {1..16}; do x=$x$x; done; echo $x | wc -c`,
		`x=a; for i in {1..22}; do x=$x$x; done; echo "$x" | wc -c`,
	} {
		if !h.unasked(t, large) {
			t.Fatalf("%q is asked about", large)
		}
		h.post(t, "shell_exec", map[string]any{"command": large})
		if outcome := h.post(t, "shell_exec", map[string]any{"command": "echo there"}); outcome.Error != nil {
			t.Errorf("after %q the plugin does not run another command: %v", large, outcome.Error)
		}
	}
}
