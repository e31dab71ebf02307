package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// moreWays are ways around a proxy by other protocols, sockets of files, devices and processes.
func moreWays(o *outside) []way {
	loopback := unix.SockaddrInet6{Addr: [16]byte{15: 1}, Port: o.TCP6, ZoneId: 1}
	mapped := unix.SockaddrInet6{Addr: [16]byte{10: 255, 11: 255, 12: 127, 15: 1}, Port: o.UDP}
	at := func(port int) unix.Sockaddr { return &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: port} }
	curl := fmt.Sprintf("NO_PROXY='*' no_proxy='*' curl -s --max-time 0.5 telnet://127.0.0.1:%d", o.TCP)
	python := fmt.Sprintf("import socket, sys; socket.create_connection(('127.0.0.1', %d)).send(sys.argv[1].encode())", o.TCP)
	return []way{
		{name: "TCP by another loopback address", try: dialed("tcp", fmt.Sprintf("127.9.9.9:%d", o.Loopback)), always: true},
		{name: "TCP over IPv6 with a zone", try: sent(unix.AF_INET6, unix.SOCK_STREAM, 0, 0, &loopback)},
		{name: "UDP by a mapped address", try: sent(unix.AF_INET6, unix.SOCK_DGRAM, 0, unix.MSG_DONTWAIT, &mapped)},
		{name: "multicast", try: multicast(o.Multicast), always: true},
		{name: "SCTP", try: sent(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, 0, at(o.SCTP))},
		{name: "UDP-Lite", try: sent(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, unix.MSG_DONTWAIT, at(o.UDPLite))},
		{name: "a program: curl without its proxy", try: func(name string) error {
			return exec.Command("/bin/bash", "-c", "printf '%s' '"+name+"' | "+curl).Run()
		}},
		{name: "a program: python", try: func(name string) error { return exec.Command("/usr/bin/python3", "-c", python, name).Run() }},

		{name: "unix packets", try: dialed("unixpacket", o.Packets), always: true},
		{name: "unix by a link in the workspace", try: dialed("unix", o.Link), always: true},
		{name: "unix by the root of the host", try: dialed("unix", fmt.Sprintf("/proc/%d/root%s", o.Host, o.Unix)), always: true},
		{name: "unix abstract datagram", try: dialed("unixgram", o.Abstract+"-datagram"), always: true},
		{name: "unix abstract packets", try: dialed("unixpacket", o.Abstract+"-packets"), always: true},

		{name: "packets by SOCK_PACKET", try: opened(unix.AF_INET, unix.SOCK_PACKET, 0), always: true, privilege: "CAP_NET_RAW"},
		{name: "raw ICMPv6", try: opened(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6), privilege: "CAP_NET_RAW"},
		{name: "netlink of the audit", try: opened(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT)},
		{name: "an interface by ioctl", try: setInterface, always: true, privilege: "CAP_NET_ADMIN"},
		{name: "an interface by netlink", try: setLink, always: true, privilege: "CAP_NET_ADMIN"},
		{name: "the device of tunnels", try: openedDevice("/dev/net/tun")},
		{name: "the device of virtual machines", try: openedDevice("/dev/vhost-vsock")},
		{name: "io_uring", try: ring},

		{name: "the namespace of the host by a descriptor of its process", try: func(name string) error {
			return onThread(func() error {
				fd, err := unix.PidfdOpen(o.Host, 0)
				if err != nil {
					return err
				}
				defer unix.Close(fd)
				if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
					return err
				}
				return sent(unix.AF_INET, unix.SOCK_STREAM, 0, 0, at(o.TCP))(name)
			})
		}, always: true, privilege: "the network of the host"},
		{name: "tracing another program", try: func(name string) error {
			return onThread(func() error { // the kernel lets go of it when the thread ends
				err := unix.PtraceSeize(o.Other)
				if err == nil {
					reached(name)
				}
				return err
			})
		}, always: true, privilege: "CAP_SYS_PTRACE"},
		{name: "the memory of the host", try: func(name string) error {
			file, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", o.Host), os.O_RDWR, 0)
			if err == nil {
				reached(name)
				return file.Close()
			}
			return err
		}, always: true, privilege: "CAP_SYS_PTRACE"},
	}
}

// onThread runs a function on a thread that ends with it.
func onThread(do func() error) error {
	result := make(chan error, 1)
	go func() { // ends with do, and its thread with it
		runtime.LockOSThread()
		result <- do()
	}()
	return <-result
}

// multicastGroup is a multicast address whose packets stay on this machine.
func multicastGroup(port int) *net.UDPAddr {
	return &net.UDPAddr{IP: net.IPv4(224, 0, 0, 199), Port: port}
}

// multicast sends the name of the way to a group on the loopback interface.
func multicast(port int) func(string) error {
	return func(name string) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.SetsockoptInet4Addr(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, [4]byte{127, 0, 0, 1}); err != nil {
			return err
		}
		to := &unix.SockaddrInet4{Port: port}
		copy(to.Addr[:], multicastGroup(port).IP.To4())
		return unix.Sendto(fd, []byte(name), 0, to)
	}
}

// setInterface starts the loopback interface, which runs: who may do so may change others too.
func setInterface(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
	if err == nil {
		reached(name)
	}
	return err
}

// setLink is like setInterface, by netlink.
func setLink(name string) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const size = unix.SizeofNlMsghdr + unix.SizeofIfInfomsg
	message := struct {
		head unix.NlMsghdr
		info unix.IfInfomsg
	}{
		unix.NlMsghdr{Len: size, Type: unix.RTM_NEWLINK, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK, Seq: 1},
		unix.IfInfomsg{Family: unix.AF_UNSPEC, Index: 1, Flags: unix.IFF_UP, Change: unix.IFF_UP},
	}
	if err := unix.Sendto(fd, unsafe.Slice((*byte)(unsafe.Pointer(&message)), size), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	var answer [4096]byte
	n, _, err := unix.Recvfrom(fd, answer[:], 0)
	if err != nil || n < unix.SizeofNlMsghdr+4 {
		return fmt.Errorf("%d bytes, %w", n, err)
	}
	if code := *(*int32)(unsafe.Pointer(&answer[unix.SizeofNlMsghdr])); code != 0 {
		return unix.Errno(-code)
	}
	reached(name)
	return nil
}

// openedDevice opens a device that needs no destination.
func openedDevice(path string) func(string) error {
	return func(name string) error {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
			reached(name)
		}
		return err
	}
}

// ring makes a ring of system calls that no filter sees, with which sockets can be made and connected.
func ring(name string) error {
	var params [120]byte
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return errno
	}
	unix.Close(int(fd))
	reached(name)
	return nil
}
