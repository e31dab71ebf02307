package auth

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// TellsAccounts reports whether this system reports the account at the other end of a TCP
// connection on this machine.
const TellsAccounts = true

// TCPOrigin returns the account that opened a TCP connection on this machine, from the
// kernel's table of connections. An account that the host's user namespace does not map has
// the number 65534.
//
// The process that opened the connection may have passed it to another one. The error is
// never [ErrNeverTold].
func TCPOrigin(conn net.Conn) (uid int, err error) {
	end, err := otherEnd(conn)
	return end.uid, err
}

// end is one end of a connection: the account that opened it and the inode of its socket.
type end struct {
	uid   int
	inode string
}

// otherEnd returns the other end of a TCP connection on this machine.
func otherEnd(conn net.Conn) (end, error) {
	ours, okOurs := conn.LocalAddr().(*net.TCPAddr)
	theirs, okTheirs := conn.RemoteAddr().(*net.TCPAddr)
	if !okOurs || !okTheirs {
		return end{}, fmt.Errorf("the connection is %s, not tcp", conn.LocalAddr().Network())
	}
	found, err := lookUp(unmap(theirs.AddrPort()), unmap(ours.AddrPort()))
	if err != nil {
		return end{}, err
	}
	// Check after the lookup: the addresses of a reset connection may belong to the next one.
	// While this one is open, no other has them.
	if err := stillOpen(conn); err != nil {
		return end{}, fmt.Errorf("the connection has ended: %w", err)
	}
	return found, nil
}

// tables returns the kernel's tables of connections. An IPv6 socket may have opened a
// connection to an IPv4 address. A system without IPv6 has no second table.
func tables() []string { return []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} }

// CheckOrigins returns why accounts are unknown on this system, or nil.
func CheckOrigins() error {
	f, err := os.Open(tables()[0])
	if err != nil {
		return fmt.Errorf("the kernel's table of connections: %w", err)
	}
	return f.Close()
}

// lookUp returns the end with the address from.
func lookUp(from, to netip.AddrPort) (end, error) {
	var errs []error
	for i, table := range tables() {
		one, found, err := lookIn(table, from, to)
		if found {
			return one, nil
		}
		if i == 0 || !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return end{}, err
	}
	return end{}, errors.New("its end of the connection is closed, or not in the host's network namespace")
}

// stillOpen returns an error if a connection is no longer open: a reset connection has no
// peer.
func stillOpen(conn net.Conn) error {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return errors.New("it is not a socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var ended error
	if err := raw.Control(func(fd uintptr) { _, ended = unix.Getpeername(int(fd)) }); err != nil {
		return err
	}
	return ended
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

func lookIn(path string, from, to netip.AddrPort) (_ end, found bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return end{}, false, err
	}
	defer func() { _ = f.Close() }() // nothing is buffered
	return endIn(f, from, to)
}

// States of a connection whose opening process still has the socket: open, or half closed by
// that process.
const (
	established = "01"
	finWait1    = "04"
	finWait2    = "05"
)

// endIn reads one end of a connection from a table like /proc/net/tcp; see proc(5).
//
// It skips a socket that its process has closed, which has no inode and appears to be root's.
// It also skips a socket that is still trying to connect from the same port.
func endIn(table io.Reader, from, to netip.AddrPort) (_ end, found bool, err error) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		columns := strings.Fields(lines.Text())
		if len(columns) < 10 {
			continue
		}
		local, okLocal := tableAddress(columns[1])
		remote, okRemote := tableAddress(columns[2])
		if !okLocal || !okRemote || local != from || remote != to {
			continue
		}
		state, inode := columns[3], columns[9]
		if inode == "0" || state != established && state != finWait1 && state != finWait2 {
			continue
		}
		uid, err := strconv.ParseUint(columns[7], 10, 32)
		if err != nil {
			return end{}, false, fmt.Errorf("the table of connections has the uid %q", columns[7])
		}
		return end{int(uid), inode}, true, nil
	}
	return end{}, false, lines.Err()
}

// tableAddress parses an address like 0100007F:1F90: 32-bit words in the machine's byte order,
// and a port.
func tableAddress(text string) (netip.AddrPort, bool) {
	address, port, ok := strings.Cut(text, ":")
	raw, err := hex.DecodeString(address)
	number, errPort := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || errPort != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	addr, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), ok
}
