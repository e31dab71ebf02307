package auth

import (
	"errors"
	"fmt"
	"net"
)

// PeerError explains why a process may not use the control socket.
type PeerError struct {
	// PID is the process that opened the connection; 0: not known.
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

// CheckPeer checks the process that opened a connection to a Unix socket. It accepts the
// host's own process and processes of the host's account, except plugins and other descendants
// of the host, even orphaned ones. It refuses a process that has ended, since it cannot be
// examined. Any error is a refusal; it is a [*PeerError] unless the system gave no answer.
//
// It cannot detect that a process of the account passed an open connection to a plugin, or
// that a plugin made a service of the account (cron, systemd, a terminal multiplexer) start a
// process: the sandbox must prevent that. Before Linux 6.5, it may accept a plugin that has
// the number of an ended process. On systems other than Linux, it checks only the account.
func CheckPeer(conn net.Conn) error {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("check the peer of a %T: it is not a Unix socket", conn)
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
