package auth_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// programs are what this test binary does when a test starts it as one.
func programs() map[string]func(args []string) error {
	return map[string]func([]string) error{"host": runHost, "peer": runPeer}
}

// runHost is a host with a control socket. For each line that it reads it
// accepts one connection and prints whom it lets in:
//
//	accept   somebody else connects
//	child    a child of its own connects
//	orphan   a child of a child connects, in a session of its own, while its
//	         parent ends
//
// It answers "in" or the reason for a refusal.
func runHost(args []string) error {
	dir, guard := args[0], args[1]
	check := auth.CheckPeer
	if guard == "off" {
		check = func(net.Conn) error { return nil }
	}
	if guard != "no subreaper" {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	listener, err := auth.ListenControl(context.Background(), dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var peer *exec.Cmd
		if how := lines.Text(); how != "accept" {
			peer = program("peer", dir, how)
			if err := peer.Start(); err != nil {
				return err
			}
		}
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		if refusal := check(conn); refusal != nil {
			fmt.Fprintln(os.Stdout, refusal)
		} else {
			fmt.Fprintln(os.Stdout, "in")
		}
		conn.Close()
		if peer != nil {
			_ = peer.Wait()
		}
	}
	return nil
}

// runPeer connects and stays until the host has closed the connection.
func runPeer(args []string) error {
	dir, how := args[0], args[1]
	switch how {
	case "orphan": // its child connects while it ends
		child := program("peer", dir, "child")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return child.Start()
	case "heir": // holds the connection of a process that has ended
		conn, err := net.FileConn(os.NewFile(3, "connection"))
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, conn)
		return nil
	}
	conn, err := auth.DialControl(context.Background(), dir)
	if err != nil {
		return err
	}
	if how == "testator" { // leaves the connection to a child
		f, err := conn.(*net.UnixConn).File() //nolint:forcetypeassert // it was dialled so
		if err != nil {
			return err
		}
		heir := program("peer", dir, "heir")
		heir.ExtraFiles = []*os.File{f}
		return heir.Start()
	}
	_, _ = io.Copy(io.Discard, conn)
	return nil
}

func TestCheckPeer(t *testing.T) {
	for _, tt := range []struct {
		name, guard, how string
		want             string // in the answer
	}{
		{"a process that the host did not start", "on", "accept", "in"},
		{"a child of the host", "on", "child", "started by the host or by a plugin"},
		{"an orphan among its descendants", "on", "orphan", "started by the host or by a plugin"},
		{"nobody, if orphans could leave", "no subreaper", "orphan", "does not adopt orphans"},
		// What happens without the check.
		{"a child, unguarded", "off", "child", "in"},
		{"an orphan, unguarded", "off", "orphan", "in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := startHost(t, tt.guard)
			if tt.how == "accept" {
				peer := program("peer", h.dir, "child") // of the test, beside the host
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

// The host's own process may connect, and so may what started it.
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

// A process that has ended can be nobody: its number may be anybody's by now.
func TestCheckPeerGone(t *testing.T) {
	for _, tt := range []struct{ name, guard, want string }{
		{"guarded", "on", "it has ended"},
		{"unguarded", "off", "in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := startHost(t, tt.guard)
			// It connects, ends and is reaped.
			if err := program("peer", h.dir, "testator").Run(); err != nil {
				t.Fatal(err)
			}
			if got := h.ask(t, "accept"); !strings.Contains(got, tt.want) {
				t.Errorf("the host says %q, want %q", got, tt.want)
			}
		})
	}
}

// However the end of the parent falls into the check, the orphan is seen.
func TestCheckPeerOrphanRace(t *testing.T) {
	h := startHost(t, "on")
	for range 100 {
		if got := h.ask(t, "orphan"); !strings.Contains(got, "started by the host or by a plugin") {
			t.Fatalf("the host says %q of an orphan", got)
		}
	}
}

func TestCheckPeerOfOtherConnections(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if err := auth.CheckPeer(a); err == nil {
		t.Error("CheckPeer of a pipe: no error")
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

func BenchmarkCheckPeer(b *testing.B) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	listener, err := auth.ListenControl(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	peer := program("peer", dir, "child") // a refusal takes as long as a permission
	if err := peer.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = peer.Wait() }()
	conn, err := listener.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	for b.Loop() {
		if err := auth.CheckPeer(conn); err == nil {
			b.Fatal("a child was let in")
		}
	}
}

// host is a [runHost] under way.
type host struct {
	dir string
	in  io.Writer
	out *bufio.Scanner
}

func startHost(t *testing.T, guard string) *host {
	t.Helper()
	h := &host{dir: t.TempDir()}
	cmd := program("host", h.dir, guard)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the host: %v", err)
		}
	})
	h.in, h.out = in, bufio.NewScanner(out)
	if !h.out.Scan() || h.out.Text() != "ready" {
		t.Fatalf("the host says %q, want ready", h.out.Text())
	}
	return h
}

// ask makes the host accept a connection, and returns what it says of it.
func (h *host) ask(t *testing.T, how string) string {
	t.Helper()
	if _, err := fmt.Fprintln(h.in, how); err != nil {
		t.Fatal(err)
	}
	if !h.out.Scan() {
		t.Fatal("the host is gone")
	}
	return h.out.Text()
}

// program is this test binary as one of its programs.
func program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	// With the race detector, each would take a second to end.
	cmd.Env = append(os.Environ(), programVar+"="+name, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}
