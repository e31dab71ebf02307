//go:build !race

package auth_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/internal/soak"
)

// These tests start processes, which the race detector slows down and does not watch.

func TestCheckPeer(t *testing.T) {
	for _, tt := range []struct {
		name, guard, how string
		want             string // in the answer
	}{
		{"a process that the host did not start", "on", "accept", "in"},
		{"a child of the host", "on", "child", "started by the host or by a plugin"},
		{"an orphan among its descendants", "on", "orphan", "started by the host or by a plugin"},
		{"nobody, if orphans could leave", "no subreaper", "orphan", "does not adopt orphans"},
		// Without the check.
		{"a child, unguarded", "off", "child", "in"},
		{"an orphan, unguarded", "off", "orphan", "in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := startHost(t, tt.guard)
			if tt.how == "accept" {
				peer := program("peer", h.dir, "child") // started by the test, not by the host
				if err := peer.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = peer.Wait() }()
			}
			if got := h.ask(t, tt.how); !strings.Contains(got, tt.want) {
				t.Errorf("the host says %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCheckPeerAncestor checks that the host's own process and its ancestors may connect.
func TestCheckPeerAncestor(t *testing.T) {
	h := startHost(t, "on")
	conn, err := auth.DialControl(t.Context(), h.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := h.ask(t, "accept"); got != "in" {
		t.Errorf("the host says %q of the process that started it, want in", got)
	}

	dir := t.TempDir()
	listener, err := auth.ListenControl(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	own, err := auth.DialControl(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if err := auth.CheckPeer(accepted); err != nil {
		t.Errorf("CheckPeer of the own process: %v", err)
	}
}

// TestCheckPeerGone checks that a process that has ended is refused: another process may
// already have its number.
func TestCheckPeerGone(t *testing.T) {
	for _, tt := range []struct{ name, guard, want string }{
		{"guarded", "on", "it has ended"},
		{"unguarded", "off", "in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := startHost(t, tt.guard)
			// The process connects and ends, and is reaped.
			if err := program("peer", h.dir, "testator").Run(); err != nil {
				t.Fatal(err)
			}
			if got := h.ask(t, "accept"); !strings.Contains(got, tt.want) {
				t.Errorf("the host says %q, want %q", got, tt.want)
			}
		})
	}
}

// TestCheckPeerOrphanRace checks that an orphan is recognized whenever its parent ends during
// the check.
func TestCheckPeerOrphanRace(t *testing.T) {
	h := startHost(t, "on")
	for range soak.Rounds(30, 100) {
		if got := h.ask(t, "orphan"); !strings.Contains(got, "started by the host or by a plugin") {
			t.Fatalf("the host says %q of an orphan", got)
		}
	}
}

func TestPeerError(t *testing.T) {
	h := startHost(t, "on")
	if got := h.ask(t, "child"); !strings.Contains(got, "the control socket is closed to process ") {
		t.Errorf("the host says %q, want the number of the process", got)
	}
	var refusal *auth.PeerError
	err := fmt.Errorf("check the peer: %w", &auth.PeerError{PID: 7, Reason: "it has ended"})
	if !errors.As(err, &refusal) || refusal.PID != 7 {
		t.Errorf("errors.As finds %v", refusal)
	}
}
