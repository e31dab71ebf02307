//go:build !linux

package auth

import "net"

// TellsAccounts reports whether this system reports the account at the other end of a TCP
// connection on this machine.
const TellsAccounts = false

// TCPOrigin returns [ErrNeverTold].
func TCPOrigin(net.Conn) (uid int, err error) { return 0, ErrNeverTold }

// CheckOrigins returns [ErrNeverTold].
func CheckOrigins() error { return ErrNeverTold }
