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

// maxSocketPath is how long the path of a unix socket may be, in bytes, on the
// system that allows least. Elsewhere longer ones take the same way round.
const maxSocketPath = 103

// ListenControl makes the control socket in a directory, for its owner only,
// whatever the length of the directory's path. The caller must hold the lock of
// the directory: a socket that is there already is one of a dead host and is
// removed. Closing the listener removes the socket.
func ListenControl(ctx context.Context, dir string) (*ControlListener, error) {
	path := filepath.Join(dir, ControlSocket)
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("control socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("control socket: %s is there and is no socket; move it away", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("control socket of a host that is gone: %w", err)
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
		unix.SetUnlinkOnClose(false) // by the name that it was bound to, which may be gone
	}
	// Whoever connects before this is turned away for the account.
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

// Bound reports whether the socket is still there, so that clients find the host.
func (l *ControlListener) Bound() bool {
	info, err := os.Lstat(l.path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) // else there is no telling
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
		return err // somebody has removed it
	}
	return errors.Join(err, os.Remove(l.path))
}

// DialControl connects to the host that holds a state directory. The error is
// [fs.ErrNotExist] or syscall.ECONNREFUSED if there is none.
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

// socketAddress returns the address of the control socket in a directory. It
// holds until done is called.
func socketAddress(dir string) (address string, done func(), err error) {
	path := filepath.Join(dir, ControlSocket)
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	return shortAddress(dir)
}
