package lines_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolhost/toolhost/host/internal/front/lines"
)

// TestGone closes the reading side of a pipe, and one side and both of a socket.
func TestGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if lines.Gone(w) {
		t.Error("the reader of a pipe is gone before it closes it")
	}
	if err := r.Close(); err != nil || !lines.Gone(w) {
		t.Errorf("the reader of a pipe has closed it (%v), and is not gone", err)
	}

	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	half, ok := client.(*net.UnixConn)
	if !ok {
		t.Fatalf("the connection is a %T", client)
	}
	if err := half.CloseWrite(); err != nil || lines.Gone(server) {
		t.Errorf("a client that reads still (%v) is gone", err)
	}
	if err := half.Close(); err != nil || !lines.Gone(server) {
		t.Errorf("a client that has closed its connection (%v) is not gone", err)
	}
	if err := server.Close(); err != nil || !lines.Gone(server) {
		t.Errorf("nobody reads from a closed connection (%v)", errors.Unwrap(err))
	}
	if lines.Gone(&bytes.Buffer{}) {
		t.Error("a buffer is gone")
	}
}
