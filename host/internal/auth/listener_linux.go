package auth

import (
	"bufio"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// listening is the state of a socket that takes connections.
const listening = "0A"

// TCPListener returns the account that listens on an address of this machine, from the kernel's
// table of connections, and the process, or 0 if this account may not see it. It returns false if
// there is no listener, or not in this network namespace.
func TCPListener(address netip.AddrPort) (uid, pid int, found bool) {
	for _, path := range tables() {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		one, found := listenerIn(f, unmap(address))
		_ = f.Close() // nothing was written
		if found {
			return one.uid, processWith(one), true
		}
	}
	return 0, 0, false
}

// listenerIn reads the socket that listens on an address, or on that port of every address, from
// a table like /proc/net/tcp; see proc(5).
func listenerIn(table io.Reader, address netip.AddrPort) (end, bool) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		columns := strings.Fields(lines.Text())
		if len(columns) < 10 || columns[3] != listening {
			continue
		}
		local, ok := tableAddress(columns[1])
		if !ok || local.Port() != address.Port() || local.Addr() != address.Addr() && !local.Addr().IsUnspecified() {
			continue
		}
		if uid, err := strconv.ParseUint(columns[7], 10, 32); err == nil {
			return end{int(uid), columns[9]}, true
		}
	}
	return end{}, false
}

// processWith returns a process that has a socket, or 0.
func processWith(socket end) int {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, entry := range processes {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && hasSocket(pid, socket.inode) {
			return pid
		}
	}
	return 0
}
