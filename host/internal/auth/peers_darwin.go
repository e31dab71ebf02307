package auth

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func checkPeer(conn int) error {
	peer, err := unix.GetsockoptXucred(conn, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	if int(peer.Uid) != os.Geteuid() {
		return &PeerError{0, fmt.Sprintf("it runs as uid %d, not as the host's", peer.Uid)}
	}
	return nil
}
