package auth_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/auth"
)

// programs are the programs that this test binary can run as.
func programs() map[string]func(args []string) error {
	return map[string]func([]string) error{"host": runHost, "peer": runPeer}
}

// runHost is a host with a control socket. For each line of input it accepts one connection,
// and prints "in" or the reason for its refusal:
//
//	accept   a process that it did not start connects
//	child    its child connects
//	orphan   its grandchild connects, in a session of its own, while the
//	         parent ends
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

// runPeer connects and waits until the host closes the connection.
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
		f, err := conn.(*net.UnixConn).File() //nolint:forcetypeassert // a Unix address was dialed
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

func TestCheckPeerOfOtherConnections(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if err := auth.CheckPeer(a); err == nil {
		t.Error("CheckPeer of a pipe: no error")
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
	peer := program("peer", dir, "child") // a refusal takes as long as an acceptance
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

// host is a running [runHost].
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

// ask makes the host accept a connection and returns its answer.
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

// program returns the command that runs this test binary as one of its programs.
func program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	// With the race detector, each would take a second to exit.
	cmd.Env = append(os.Environ(), programVar+"="+name, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	return cmd
}
