package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// way is a way around the proxy.
type way struct {
	name string
	try  func(name string) error
	// always means that the way leads outside on every machine, without a guard; privilege is what
	// it takes.
	always    bool
	privilege string
}

// dialed connects to an address of this machine and says the name of the way.
func dialed(network, address string) func(string) error {
	return func(name string) error {
		conn, err := net.Dial(network, address)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = io.WriteString(conn, name)
		return err
	}
}

// sent sends the name of the way with system calls.
func sent(family, typ, protocol, flags int, to unix.Sockaddr) func(string) error {
	return func(name string) error {
		fd, err := unix.Socket(family, typ, protocol)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if flags == 0 && typ == unix.SOCK_STREAM {
			if err := unix.Connect(fd, to); err != nil {
				return err
			}
			_, err := unix.Write(fd, []byte(name))
			return err
		}
		return unix.Sendto(fd, []byte(name), flags, to)
	}
}

// opened opens a socket that needs no destination: to have it is to be outside.
func opened(family, typ, protocol int) func(string) error {
	return func(name string) error {
		fd, err := unix.Socket(family, typ, protocol)
		if err == nil {
			unix.Close(fd)
			reached(name)
		}
		return err
	}
}

func reached(name string) { fmt.Fprintln(os.Stdout, "reached:", name) }

// ways are all ways around a proxy.
func ways(o *outside) []way {
	home := [4]byte{127, 0, 0, 1}
	at := func(port int) unix.Sockaddr { return &unix.SockaddrInet4{Addr: home, Port: port} }
	at6 := func(port int) unix.Sockaddr { return &unix.SockaddrInet6{Addr: [16]byte{15: 1}, Port: port} }
	local := func(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
	network := "network of the host"
	return append(moreWays(o), []way{
		{name: "inherited descriptors", try: func(name string) error {
			for fd := range 1024 {
				if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err == nil {
					reached(name)
					return nil
				}
			}
			return unix.ENOTSOCK
		}},
		{name: "TCP", try: dialed("tcp", local("127.0.0.1", o.TCP)), always: true},
		{name: "TCP by 0.0.0.0", try: dialed("tcp", local("0.0.0.0", o.TCP)), always: true},
		{name: "TCP by localhost", try: dialed("tcp", local("localhost", o.TCP)), always: true},
		{name: "TCP by a mapped address", try: sent(unix.AF_INET6, unix.SOCK_STREAM, 0, 0, &unix.SockaddrInet6{Addr: [16]byte{10: 255, 11: 255, 12: 127, 15: 1}, Port: o.TCP})},
		{name: "TCP over IPv6", try: dialed("tcp", local("::1", o.TCP6))},
		{name: "TCP over IPv6 by [::]", try: dialed("tcp", local("::", o.TCP6))},
		{name: "TCP by MSG_FASTOPEN", try: sent(unix.AF_INET, unix.SOCK_STREAM, 0, unix.MSG_FASTOPEN, at(o.TCP)), always: true},
		{name: "MPTCP", try: sent(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, 0, at(o.TCP))},
		{name: "UDP", try: dialed("udp", local("127.0.0.1", o.UDP)), always: true},
		{name: "UDP by sendto", try: sent(unix.AF_INET, unix.SOCK_DGRAM, 0, 0, at(o.UDP)), always: true},
		{name: "UDP over IPv6", try: sent(unix.AF_INET6, unix.SOCK_DGRAM, 0, 0, at6(o.UDP6))},
		{name: "DNS", try: func(name string) error { // a question is a datagram
			conn, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IP(home[:]), Port: o.UDP})
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Write([]byte(name))
			return err
		}, always: true},
		{name: "a program: bash", try: func(name string) error {
			return exec.Command("/bin/bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d; printf '%%s' '%s' >&3", o.TCP, name)).Run()
		}},
		{name: "unix", try: dialed("unix", o.Unix), always: true},
		{name: "unix in the workspace", try: dialed("unix", o.Inside), always: true},
		{name: "unix in the host's state", try: dialed("unix", o.State), always: true},
		{name: "unix by /proc/1/root", try: dialed("unix", "/proc/1/root"+o.Unix), privilege: "to follow links of another's process"},
		{name: "unix by /proc/self/root", try: dialed("unix", "/proc/self/root"+o.Unix), always: true},
		{name: "unix abstract", try: dialed("unix", o.Abstract), always: true},
		{name: "unix datagram", try: dialed("unixgram", o.Datagram), always: true},
		{name: "unix datagram from a pair", try: func(name string) error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			defer func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) }()
			return unix.Sendto(pair[0], []byte(name), 0, &unix.SockaddrUnix{Name: o.Datagram})
		}, always: true},
		{name: "raw ICMP", try: opened(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), always: true, privilege: "CAP_NET_RAW"},
		{name: "raw IP", try: opened(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW), always: true, privilege: "CAP_NET_RAW"},
		{name: "raw IPv6", try: opened(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW), privilege: "CAP_NET_RAW"},
		{name: "packets", try: opened(unix.AF_PACKET, unix.SOCK_RAW, 0), always: true, privilege: "CAP_NET_RAW"},
		{name: "packets without their header", try: opened(unix.AF_PACKET, unix.SOCK_DGRAM, 0), always: true, privilege: "CAP_NET_RAW"},
		{name: "netlink of the kernel's objects", try: opened(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT), always: true},
		{name: "netlink of the firewall", try: opened(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)},
		{name: "vsock", try: opened(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
		{name: "bluetooth", try: opened(unix.AF_BLUETOOTH, unix.SOCK_RAW, 1)},
		{name: "CAN", try: opened(unix.AF_CAN, unix.SOCK_RAW, 1)},
		{name: "TIPC", try: opened(unix.AF_TIPC, unix.SOCK_STREAM, 0)},
		{name: "RDS", try: opened(unix.AF_RDS, unix.SOCK_SEQPACKET, 0)},
		{name: "XDP", try: opened(unix.AF_XDP, unix.SOCK_RAW, 0)},
		{name: "SMC", try: opened(unix.AF_SMC, unix.SOCK_STREAM, 0)},
		{name: "QIPCRTR", try: opened(unix.AF_QIPCRTR, unix.SOCK_DGRAM, 0)},
		{name: "PPPoX", try: opened(unix.AF_PPPOX, unix.SOCK_STREAM, 0)},
		{name: "the namespace of the host", try: enters(o.Host, at(o.TCP)), always: true, privilege: network},
		{name: "the namespace of process 1", try: enters(1, at(o.TCP)), privilege: network},
		{name: "the namespace of another program", try: func(name string) error {
			return inNamespace(o.Other, func() error {
				fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0) // net would do it on another thread
				if err != nil {
					return err
				}
				defer unix.Close(fd)
				if err := unix.Connect(fd, at(otherPort)); err == nil {
					reached(name)
				}
				return err
			})
		}, always: true, privilege: network},
		{name: "the proxy of another program", try: func(name string) error {
			if answerAt(otherPort) == "other" {
				reached(name)
			}
			return nil
		}},
		{name: "a descriptor of the host", try: func(name string) error {
			pidfd, err := unix.PidfdOpen(o.Host, 0)
			if err != nil {
				return err
			}
			for fd := range 64 {
				if got, err := unix.PidfdGetfd(pidfd, fd, 0); err == nil {
					unix.Close(got)
					reached(name)
					return nil
				}
			}
			return unix.EPERM
		}, always: true, privilege: "CAP_SYS_PTRACE"},
	}...)
}

// enters goes to the network namespace of a process, and to a service of the host from there.
func enters(pid int, to unix.Sockaddr) func(string) error {
	return func(name string) error {
		return inNamespace(pid, func() error { return sent(unix.AF_INET, unix.SOCK_STREAM, 0, 0, to)(name) })
	}
}

// inNamespace runs a function in the network namespace of a process.
func inNamespace(pid int, do func() error) error {
	file, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return err
	}
	defer file.Close()
	result := make(chan error, 1)
	go func() { // ends with do, and its thread with it
		runtime.LockOSThread()
		if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			result <- err
			return
		}
		result <- do()
	}()
	return <-result
}

// answerAt returns what the proxy at a port says.
func answerAt(port int) string {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return ""
	}
	defer conn.Close()
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// proxyPrograms are the programs of these tests.
func proxyPrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"waits": func([]string) error { // until its input ends
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		},
		"around": func(args []string) error {
			var o outside
			if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
				return err
			}
			if answerAt(proxyPort) == "mine" {
				reached("proxy")
			}
			for _, way := range ways(&o) {
				if err := way.try(way.name); err != nil {
					fmt.Fprintf(os.Stderr, "%s: %v\n", way.name, err)
				}
			}
			fmt.Fprint(os.Stdout, "\nend\n")
			return nil
		},
	}
}
