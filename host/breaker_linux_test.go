package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
)

// TestCrashedPluginIsShown kills a plugin that may not crash once: /readyz and the list say
// that it is off, until when, and how it is started, and a restart puts an end to that.
func TestCrashedPluginIsShown(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+strings.Replace(counting, "{", "{\n  restart { max_crashes = 1 }", 1)))
	victim := pidOf(t, h.post(t, "probe_process", nil).Result.Content)
	const off = `the plugin \"probe\" crashed too often and is off until `
	if text := h.must(t, http.StatusOK, "GET", "/readyz", "", ""); strings.Contains(text, off) {
		t.Fatalf("before it crashes, /readyz = %s", text)
	}
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the plugin is off", func() bool { return h.plugin(t, "probe").Phase == supervisor.Broken })
	text := h.must(t, http.StatusOK, "GET", "/readyz", "", "")
	if !strings.Contains(text, off) || !strings.Contains(text, "toolhost plugins restart probe") {
		t.Errorf("/readyz = %s, want that the plugin is off and what starts it", text)
	}
	if list := h.ok(t, "plugins", "list"); !strings.Contains(list, "broken") || !strings.Contains(list, "plugins restart probe") {
		t.Errorf("the list shows\n%s\nwant that the plugin is off and what starts it", list)
	}
	h.ok(t, "plugins", "restart", "probe")
	if text := h.must(t, http.StatusOK, "GET", "/readyz", "", ""); strings.Contains(text, off) {
		t.Errorf("after a restart, /readyz = %s", text)
	}
}
