//go:build !linux

package auth

import "net"

// TCPProcess returns [ErrNeverTold].
func TCPProcess(net.Conn) (Process, error) { return Process{}, ErrNeverTold }

// Lives returns false: no process is known on this system.
func (Process) Lives() bool { return false }
