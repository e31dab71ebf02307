package auth

import (
	"errors"
	"fmt"
	"net"
)

// PeerError says why a process may not use the control socket.
type PeerError struct {
	// PID is that of the process that opened the connection; 0: not known.
	PID    int
	Reason string
}

// Error implements error.
func (e *PeerError) Error() string {
	if e.PID == 0 {
		return "the control socket is closed to this process: " + e.Reason
	}
	return fmt.Sprintf("the control socket is closed to process %d: %s", e.PID, e.Reason)
}

// CheckPeer checks who opened a connection that a unix socket has accepted. It
// lets in processes of the host's own account, but no plugin and nothing that a
// plugin or the host has started: what descends from the host's process, how
// often ever it was orphaned, is refused. The host's own process is let in. A
// process that has ended is refused, since nothing can be told of it. Any error
// is a refusal; it is a [*PeerError] unless the system gave no answer.
//
// It cannot see that a process of the account gave an open connection to a
// plugin, nor that a plugin had a service of the account (cron, systemd, a
// terminal multiplexer) start a process: keeping plugins from those is the
// sandbox's part. Before Linux 6.5 a plugin that is let in under the number of
// a process that has ended cannot be ruled out. On other systems than Linux the
// account is all that is checked.
func CheckPeer(conn net.Conn) error {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("check the peer of a %T: it is no unix socket", conn)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return fmt.Errorf("check the peer: %w", err)
	}
	var refusal error
	err = raw.Control(func(fd uintptr) { refusal = checkPeer(int(fd)) })
	if err = errors.Join(err, refusal); err != nil {
		return fmt.Errorf("check the peer: %w", err)
	}
	return nil
}
