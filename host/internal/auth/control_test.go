package auth_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/toolhost/toolhost/host/internal/auth"
)

func TestControlSocket(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	for _, tt := range []struct{ name, dir string }{
		{"a short path", t.TempDir()},
		{"a path too long for a socket", long},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.dir == long && runtime.GOOS != "linux" {
				t.Skip("only Linux has a way round")
			}
			if err := os.MkdirAll(tt.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(tt.dir, auth.ControlSocket)
			if _, err := auth.DialControl(t.Context(), tt.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("DialControl without a host: %v, want ErrNotExist", err)
			}
			leaveSocket(t, tt.dir) // left from a host that was killed
			if _, err := auth.DialControl(t.Context(), tt.dir); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("DialControl with a dead host: %v, want ECONNREFUSED", err)
			}

			listener, err := auth.ListenControl(t.Context(), tt.dir)
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != fs.ModeSocket|0o600 {
				t.Errorf("mode of the socket = %v, want Srw-------", info.Mode())
			}
			conn, err := auth.DialControl(t.Context(), tt.dir)
			if err != nil {
				t.Fatal(err)
			}
			accepted, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := accepted.(*net.UnixConn); !ok {
				t.Errorf("Accept gives a %T, want a *net.UnixConn", accepted)
			}
			accepted.Close()
			conn.Close()
			if err := listener.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after Close the socket is still there: %v", err)
			}
		})
	}
}

func TestListenControlKeepsWhatIsNoSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, auth.ControlSocket)
	write(t, path, "precious", 0o600)
	if l, err := auth.ListenControl(t.Context(), dir); err == nil {
		l.Close()
		t.Error("ListenControl took the place of a file")
	}
	if text, err := os.ReadFile(path); string(text) != "precious" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// leaveSocket creates a socket without a listener.
func leaveSocket(t *testing.T, dir string) {
	t.Helper()
	short := t.TempDir()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	if err := os.Rename(filepath.Join(short, "s"), filepath.Join(dir, auth.ControlSocket)); err != nil {
		t.Fatal(err)
	}
}
