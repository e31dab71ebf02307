package auth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// ControlSocket is the name of the control socket in the state directory.
const ControlSocket = "control.sock"

// maxSocketPath bounds the path of a Unix socket, in bytes, on the system with the lowest
// bound.
const maxSocketPath = 103

// ListenControl makes the control socket in a directory, for its owner only. The path of the
// directory may have any length. The caller must hold the directory's lock: then an existing
// socket is left from an earlier host, and ListenControl removes it. Closing the listener
// removes the socket.
func ListenControl(ctx context.Context, dir string) (*ControlListener, error) {
	path := filepath.Join(dir, ControlSocket)
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("control socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("control socket: %s is not a socket; move it away", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove the control socket of a dead host: %w", err)
		}
	}
	address, done, err := socketAddress(dir)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer done()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", address)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l := &ControlListener{Listener: listener, path: path}
	if unix, ok := listener.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false) // the path that it was bound to may no longer exist
	}
	// CheckPeer refuses a client of another account that connects before this.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), l.Close())
	}
	if l.socket, err = os.Lstat(path); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), l.Close())
	}
	return l, nil
}

// ControlListener removes its socket when it is closed.
type ControlListener struct {
	net.Listener
	path   string
	socket fs.FileInfo
}

// Bound reports whether the socket still exists, so that clients find the host.
func (l *ControlListener) Bound() bool {
	info, err := os.Lstat(l.path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) // other errors leave it unknown
	}
	return os.SameFile(info, l.socket)
}

// Close implements [net.Listener].
func (l *ControlListener) Close() error {
	err := l.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		return err
	}
	if l.socket != nil && !l.Bound() {
		return err // already removed
	}
	return errors.Join(err, os.Remove(l.path))
}

// DialControl connects to the host that holds a state directory. If there is none, the error
// is [fs.ErrNotExist] or syscall.ECONNREFUSED.
func DialControl(ctx context.Context, dir string) (net.Conn, error) {
	address, done, err := socketAddress(dir)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer done()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return conn, nil
}

// socketAddress returns the address of the control socket in a directory, which is valid
// until done is called.
func socketAddress(dir string) (address string, done func(), err error) {
	path := filepath.Join(dir, ControlSocket)
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	return shortAddress(dir)
}
