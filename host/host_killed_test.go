package main

import (
	"strings"
	"testing"
)

// TestKilledHostDoesNotRepeatACall kills the host during a command's call that changes
// something. The command becomes the host itself and must not repeat the call, since its
// effect is unknown.
func TestKilledHostDoesNotRepeatACall(t *testing.T) {
	t.Parallel()
	h := serve(t, writeConfig(t, listening+counting))
	done := make(chan [2]string, 1)
	go func() { // ends with the call
		_, stderr, code := h.cli("call", "probe_tally", `{"note":"x","hold":true}`)
		done <- [2]string{stderr, string(rune('0' + code))}
	}()
	eventually(t, "the call has had its effect", func() bool { return len(h.counted()) == 1 })
	h.kill()
	got := <-done
	if got[1] == "0" || !strings.Contains(got[0], "unknown") {
		t.Errorf("the command ended with %s: %s; want it to say that the outcome is unknown", got[1], got[0])
	}
	if !strings.Contains(got[0], "hint: ") || strings.Contains(got[0], "key") {
		t.Errorf("the command says %s; want a hint, and nothing of a key: the command made that itself", got[0])
	}
	if n := len(h.counted()); n != 1 {
		t.Errorf("the call had its effect %d times, want once", n)
	}
}
