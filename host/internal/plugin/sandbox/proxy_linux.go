package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// socketPair returns a pair of unix sockets, on which a launcher can send a socket.
func socketPair() (pipe, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return pipe{}, err
	}
	return pipe{r: os.NewFile(uintptr(pair[0]), "proxy"), w: os.NewFile(uintptr(pair[1]), "proxy")}, nil
}

// listener receives the socket that the launcher opened in the network namespace of its program.
// The launcher has sent it before it reported.
func (t *talk) listener() (net.Listener, error) {
	var one [1]byte
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(t.proxy.Fd()), one[:], control, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("receive the socket of the proxy: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("the launcher sent no socket for the proxy"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("the launcher sent no socket for the proxy"), err)
	}
	file := os.NewFile(uintptr(fds[0]), "proxy")
	defer func() { _ = file.Close() }() // the listener has its own
	return net.FileListener(file)
}
