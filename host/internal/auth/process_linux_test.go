package auth

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
)

// connected returns the host's side of a connection, and the process that opened it. The
// process keeps the connection until its standard input ends.
func connected(t *testing.T) (net.Conn, *exec.Cmd) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	cmd := exec.CommandContext(t.Context(), "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%s; read line", port))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // the test may have killed it
	})
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, cmd
}

// TestTCPProcess finds the different processes of two connections, and notices that one has
// ended.
func TestTCPProcess(t *testing.T) {
	first, cmd := connected(t)
	second, other := connected(t)
	one, err := TCPProcess(first)
	if err != nil || one.PID != cmd.Process.Pid || !one.Lives() {
		t.Fatalf("TCPProcess = %+v, %v; want process %d, which lives", one, err, cmd.Process.Pid)
	}
	if two, err := TCPProcess(second); err != nil || two.PID != other.Process.Pid || two == one {
		t.Errorf("TCPProcess of the other = %+v, %v; want process %d", two, err, other.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if one.Lives() {
		t.Error("a process lives that was killed")
	}
	if again, err := TCPProcess(first); err == nil {
		t.Errorf("TCPProcess of a connection whose process has ended = %+v, want an error", again)
	}
	if (Process{PID: os.Getpid(), Started: "1"}).Lives() {
		t.Error("a process lives that had the number of this one before")
	}
}

// TestTCPProcessOfThisOne finds the test's own process.
func TestTCPProcessOfThisOne(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if p, err := TCPProcess(conn); err != nil || p.PID != os.Getpid() {
		t.Errorf("TCPProcess = %+v, %v; want this process", p, err)
	}
}

// TestInheritedSocket checks that the parent is found if its child keeps the connection too.
func TestInheritedSocket(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	cmd := exec.CommandContext(t.Context(), "bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%s; cat <&0 & echo ready; wait", port))
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
		_ = in.Close()
		_ = cmd.Wait() // its exit status does not matter
	})
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if !bufio.NewScanner(out).Scan() {
		t.Fatal("the process does not say that it is ready")
	}
	if p, err := TCPProcess(conn); err != nil || p.PID != cmd.Process.Pid {
		t.Errorf("TCPProcess = %+v, %v; want the parent %d", p, err, cmd.Process.Pid)
	}
}

func TestStartIn(t *testing.T) {
	const after = " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	for text, want := range map[string]string{
		"12 (a b) c) S" + after: "4711", "12 (x) Z" + after: "", "12 (x) X" + after: "", "12 (x) S 1 2": "", "": "",
	} {
		if got, err := startIn([]byte(text)); got != want || (err == nil) != (want != "") {
			t.Errorf("startIn(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}
