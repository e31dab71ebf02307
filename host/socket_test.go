package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestControlSocketIsMadeAgain removes the control socket of a running host: commands find the
// host again.
func TestControlSocketIsMadeAgain(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening))
	socket := filepath.Join(h.stateDir, "control.sock")
	for range 2 {
		if err := os.Remove(socket); err != nil {
			t.Fatal(err)
		}
		h.ok(t, "grants", "list") // waits for the host that owns the state directory
	}
	h.stop()
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket after the end of the host: %v, want none", err)
	}
}
