package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// networkAttacks reach for sockets that are not the plugin's.
func networkAttacks() []attack {
	// A service that everyone on the machine can reach, and a way to it.
	reach := func(kind, how string, edit func(*Profile)) func(*scene) attempt {
		return func(s *scene) attempt {
			service, address := s.listen(kind)
			return attempt{program: []string{"reach", how, address}, profile: edit, happened: func(t *testing.T, _ string) bool {
				t.Helper()
				return ready(t, service)
			}}
		}
	}
	socket := func(name string) func(*scene) attempt {
		return func(*scene) attempt {
			return attempt{program: []string{"socket", name}, profile: executes}
		}
	}
	host := func(p *Profile) { p.Confinement.Network = NetworkHost }
	return []attack{
		{name: "connect to a TCP port", root: all, stage: reach("tcp", "stream", nil)},
		{name: "connect while sending (`MSG_FASTOPEN`)", root: all, stage: reach("tcp", "fastopen", nil)},
		{name: "send a datagram, as a DNS question (UDP)", root: all, stage: reach("udp", "datagram", nil)},
		{name: "connect to a TCP port by MPTCP", root: all, stage: reach("tcp", "mptcp", nil)},
		{name: "connect to a unix socket outside", root: all, stage: reach("unix", "stream", nil)},
		{name: "connect to a unix socket in the workspace, and be given a file there", root: all, stage: reach("workspace", "stream", nil)},
		{name: "connect to the control socket in the host's state directory", root: all, stage: reach("state", "stream", nil)},
		{name: "send a datagram to a unix socket outside", root: all, stage: reach("unixgram", "datagram", nil)},
		{name: "send a datagram to a unix socket outside from one end of a pair", root: all, stage: reach("unixgram", "pair", nil)},
		{name: "connect to an abstract unix socket", root: all, stage: reach("abstract", "stream", nil)},
		{name: "may execute others: connect to a TCP port", root: all, stage: reach("tcp", "stream", executes)},
		{name: "may execute others: send a datagram (UDP)", root: all, stage: reach("udp", "datagram", executes)},
		{name: "may execute others: connect to a unix socket outside", root: "bs", stage: reach("unix", "stream", executes)},
		{name: "may execute others: send a datagram to a unix socket outside from one end of a pair", root: "bs", stage: reach("unixgram", "pair", executes)},
		{name: "may execute others: connect to a unix socket in the workspace", root: "b", stage: reach("workspace", "stream", executes)},
		{name: "may execute others: connect to the control socket in the host's state directory", root: all, stage: reach("state", "stream", executes)},
		{name: "may execute others: connect to an abstract unix socket", root: all, stage: reach("abstract", "stream", executes)},
		{name: "has the host's network: connect to an abstract unix socket", root: all, stage: reach("abstract", "stream", host)},
		{name: "has the host's network: connect to a unix socket outside", root: "s", stage: reach("unix", "stream", host)},
		{name: "open a raw socket", root: all, rootOnly: "it takes a capability", stage: socket("raw")},
		{name: "open a packet socket, which sees all that passes", root: all, rootOnly: "it takes a capability", stage: socket("packet")},
		{name: "open a netlink socket that is not for addresses and routes", root: all, stage: socket("netlink")},
		{name: "open a socket to the virtual machine's host (vsock)", root: all, stage: func(*scene) attempt {
			// A kernel may have none; then the call differs from the one before by a
			// number, and that one is the control.
			if fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0); err == nil {
				unix.Close(fd)
				return attempt{program: []string{"socket", "vsock"}, profile: executes}
			}
			return attempt{program: []string{"socket", "vsock"}, profile: executes, control: instead("socket", "netlink"), impossible: true}
		}},
		{name: "open a socket to the kernel's cryptography (`AF_ALG`)", root: all, stage: func(*scene) attempt {
			if fd, err := unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0); err == nil {
				unix.Close(fd)
				return attempt{program: []string{"socket", "alg"}, profile: executes}
			}
			return attempt{program: []string{"socket", "alg"}, profile: executes, control: instead("socket", "netlink"), impossible: true}
		}},
	}
}

// instead makes the control one of another program.
func instead(program ...string) func(*Profile) {
	return func(p *Profile) { p.Args = append([]string{"attack"}, program...) }
}

// listen opens a service and returns how to reach it.
func (s *scene) listen(kind string) (service int, address string) {
	s.t.Helper()
	family, typ := unix.AF_UNIX, unix.SOCK_STREAM
	var at unix.Sockaddr
	switch kind {
	case "tcp", "udp":
		family, at = unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	case "abstract":
		address = "@" + s.dir
	case "workspace":
		address = s.workspace + "/socket"
	case "state":
		address = s.state + "/socket"
		must(s.t, os.Chmod(s.state, 0o755)) // what keeps it off is not the mode
	default:
		address = s.home + "/socket"
	}
	if kind == "udp" || kind == "unixgram" {
		typ = unix.SOCK_DGRAM
	}
	if at == nil {
		at = &unix.SockaddrUnix{Name: address}
	}
	service, err := unix.Socket(family, typ|unix.SOCK_CLOEXEC, 0)
	must(s.t, err)
	s.t.Cleanup(func() { unix.Close(service) })
	// A name of a socket is short. The path is reached from where it lies.
	if strings.HasPrefix(address, "/") {
		must(s.t, bindBelow(service, address))
		must(s.t, os.Chmod(address, 0o777))
	} else {
		must(s.t, unix.Bind(service, at))
	}
	if typ == unix.SOCK_STREAM {
		must(s.t, unix.Listen(service, 5))
	}
	if family == unix.AF_INET {
		name, err := unix.Getsockname(service)
		must(s.t, err)
		if v4, ok := name.(*unix.SockaddrInet4); ok {
			address = strconv.Itoa(v4.Port)
		}
	}
	return service, address
}

func bindBelow(fd int, path string) error {
	if len(path) > 100 {
		return errors.New("the name of the socket is too long")
	}
	return unix.Bind(fd, &unix.SockaddrUnix{Name: path})
}

// networkPrograms are the programs of networkAttacks.
func networkPrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"reach": func(args []string) error { return reachFor(args[0], args[1]) },
		"socket": func(args []string) error {
			of, ok := map[string][3]int{
				"raw":     {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
				"packet":  {unix.AF_PACKET, unix.SOCK_RAW, 0},
				"netlink": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT},
				"vsock":   {unix.AF_VSOCK, unix.SOCK_STREAM, 0},
				"alg":     {unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
			}[args[0]]
			if !ok {
				return fmt.Errorf("socket %q", args[0])
			}
			if _, err := unix.Socket(of[0], of[1], of[2]); err != nil {
				return err
			}
			return done()
		},
	}
}

// reachFor sends to a port of this machine, or to a unix socket.
func reachFor(how, address string) error {
	family := unix.AF_UNIX
	var to unix.Sockaddr = &unix.SockaddrUnix{Name: address}
	if port, err := strconv.Atoi(address); err == nil {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port}
	}
	typ, protocol := unix.SOCK_STREAM, 0
	switch how {
	case "datagram":
		typ = unix.SOCK_DGRAM
	case "mptcp":
		protocol = unix.IPPROTO_MPTCP
	case "pair":
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(pair[0], []byte("attack"), 0, to)
	}
	fd, err := unix.Socket(family, typ, protocol)
	if err != nil {
		return err
	}
	switch how {
	case "datagram":
		return unix.Sendto(fd, []byte("attack"), 0, to)
	case "fastopen":
		return unix.Sendto(fd, []byte("attack"), unix.MSG_FASTOPEN, to)
	}
	return unix.Connect(fd, to)
}
