//go:build amd64 || arm64

package launch

import (
	"encoding/binary"
	"fmt"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The attacks of package sandbox test the filter in the kernel. This file tests what they
// cannot: calls that need a capability or a rare kernel, or that would end the machine. The
// filter is a program, and the test runs it as one.

// systemCall is a call that a filter is asked about.
type systemCall struct {
	number    uint32
	arch      uint32 // 0: the filter's architecture
	arguments [6]uint64
}

func call(number int, arguments ...uint64) systemCall {
	c := systemCall{number: uint32(number)}
	copy(c.arguments[:], arguments)
	return c
}

const (
	allowed    = uint32(answerAllow)
	noSuchCall = answerErrno | uint32(unix.ENOSYS)
)

// answerTo returns the filter's answer, as the kernel would compute it.
func (f *Filter) answerTo(t *testing.T, c systemCall) uint32 {
	t.Helper()
	program, err := f.program()
	if err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	if c.arch == 0 {
		c.arch = architecture
	}
	// struct seccomp_data of a little-endian processor: number, architecture,
	// instruction pointer, arguments. This machine loads its words as a network has
	// them.
	words := []uint32{c.number, c.arch, 0, 0}
	for _, a := range c.arguments {
		words = append(words, uint32(a), uint32(a>>32))
	}
	var data []byte
	for _, w := range words {
		data = binary.BigEndian.AppendUint32(data, w)
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(got)
}

func (c systemCall) String() string {
	return fmt.Sprintf("call %#x of %#x with %#x", c.number, c.arch, c.arguments)
}

// The kinds of programs: with network and other programs, with network only, with neither.
var (
	openFilter    = &Filter{Sockets: SocketsNetwork, IPC: true, Memfd: true, SharedMemory: true}
	networkFilter = &Filter{Sockets: SocketsNetwork}
	closedFilter  = &Filter{Sockets: SocketsListen}
)

func TestFilterOfAll(t *testing.T) {
	const (
		self, other = 0, 4321
		thread      = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM
		ofProcess   = 1 // IOPRIO_WHO_PROCESS
	)
	for _, tt := range []struct {
		name string
		call systemCall
		want uint32
	}{
		{"what every program does", call(unix.SYS_OPENAT), allowed},
		{"the highest number", call(0x3fffffff), allowed},
		{"of another processor", systemCall{number: unix.SYS_OPENAT, arch: unix.AUDIT_ARCH_I386}, answerKill},
		{"of the same one in 32 bits (x32)", call(0x40000000 | unix.SYS_OPENAT), noSuchCall},
		{"a refused one, in 32 bits", call(0x40000000 | unix.SYS_PTRACE), noSuchCall},
		{"a process", call(unix.SYS_CLONE, uint64(unix.SIGCHLD)), allowed},
		{"a thread", call(unix.SYS_CLONE, thread), allowed},
		{"mounts of its own", call(unix.SYS_CLONE, unix.CLONE_NEWNS|uint64(unix.SIGCHLD)), refused},
		{"control groups of its own", call(unix.SYS_CLONE, unix.CLONE_NEWCGROUP), refused},
		{"a name of its own", call(unix.SYS_CLONE, unix.CLONE_NEWUTS), refused},
		{"queues of its own", call(unix.SYS_CLONE, unix.CLONE_NEWIPC), refused},
		{"users of its own", call(unix.SYS_CLONE, unix.CLONE_NEWUSER), refused},
		{"processes of its own", call(unix.SYS_CLONE, unix.CLONE_NEWPID), refused},
		{"a network of its own", call(unix.SYS_CLONE, unix.CLONE_NEWNET), refused},
		{"its limits", call(unix.SYS_PRLIMIT64, self), allowed},
		{"another's limits", call(unix.SYS_PRLIMIT64, other), refused},
		{"its processors", call(unix.SYS_SCHED_SETAFFINITY, self), allowed},
		{"another's processors", call(unix.SYS_SCHED_SETAFFINITY, other), refused},
		{"another's scheduler", call(unix.SYS_SCHED_SETSCHEDULER, other), refused},
		{"another's scheduler by its parameter", call(unix.SYS_SCHED_SETPARAM, other), refused},
		{"another's scheduler by its attributes", call(unix.SYS_SCHED_SETATTR, other), refused},
		{"its priority", call(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, self), allowed},
		{"another's priority", call(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, other), refused},
		{"that of another group", call(unix.SYS_SETPRIORITY, unix.PRIO_PGRP, other), refused},
		{"that of its user", call(unix.SYS_SETPRIORITY, unix.PRIO_USER, self), refused},
		{"its disk's priority", call(unix.SYS_IOPRIO_SET, ofProcess, self), allowed},
		{"another's disk's", call(unix.SYS_IOPRIO_SET, ofProcess, other), refused},
		{"that of its user's disk", call(unix.SYS_IOPRIO_SET, ioprioOfUser, self), refused},
		{"how large a terminal is", call(unix.SYS_IOCTL, 0, unix.TIOCGWINSZ), allowed},
		{"typing into a terminal", call(unix.SYS_IOCTL, 0, unix.TIOCSTI), refused},
		{"pasting into a console", call(unix.SYS_IOCTL, 0, unix.TIOCLINUX), refused},
		{"the same, with more than the kernel looks at", call(unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<32), refused},
		{"clone with flags that cannot be seen", call(unix.SYS_CLONE3), noSuchCall},
		{"calls that cannot be seen", call(unix.SYS_IO_URING_SETUP), noSuchCall},
		{"making them", call(unix.SYS_IO_URING_ENTER), noSuchCall},
		{"preparing them", call(unix.SYS_IO_URING_REGISTER), noSuchCall},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, f := range []*Filter{openFilter, networkFilter, closedFilter} {
				if got := f.answerTo(t, tt.call); got != tt.want {
					t.Errorf("%+v: %v is answered %#x, want %#x", f, tt.call, got, tt.want)
				}
			}
		})
	}
}

// TestFilterRefuses covers the calls that are refused to every program.
func TestFilterRefuses(t *testing.T) {
	for what, calls := range map[string][]int{
		"other processes": {
			unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
			unix.SYS_PROCESS_MADVISE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
		},
		"mounts and namespaces": {
			unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT,
			unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS,
		},
		"the inside of the kernel": {
			unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
			unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_SYSLOG, unix.SYS_PERSONALITY,
		},
		"files without paths": {
			unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
		},
		"the whole system": {
			unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_SETHOSTNAME,
			unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_VHANGUP,
		},
		"what only this processor has": deniedHere(),
	} {
		for _, number := range calls {
			for _, f := range []*Filter{openFilter, networkFilter, closedFilter} {
				if got := f.answerTo(t, call(number)); got != refused {
					t.Errorf("%s: %+v answers call %d with %#x, want %#x", what, f, number, got, refused)
				}
			}
		}
	}
}

// TestFilterOfKinds covers calls that depend on the purpose of a program.
func TestFilterOfKinds(t *testing.T) {
	const flags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	for _, tt := range []struct {
		name                  string
		call                  systemCall
		open, network, closed uint32
	}{
		{"a file in memory", call(unix.SYS_MEMFD_CREATE), allowed, refused, refused},
		{"a secret one", call(unix.SYS_MEMFD_SECRET), allowed, refused, refused},
		{"memory of its own", call(unix.SYS_MMAP, 0, 4096, 3, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS), allowed, allowed, allowed},
		{"a file's memory", call(unix.SYS_MMAP, 0, 4096, 3, unix.MAP_SHARED), allowed, allowed, allowed},
		{
			"shared memory", call(unix.SYS_MMAP, 0, 4096, 3, unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_POPULATE),
			allowed, answerErrno | uint32(unix.ENOMEM), answerErrno | uint32(unix.ENOMEM),
		},
		{"System V memory", call(unix.SYS_SHMGET), allowed, refused, refused},
		{"a known one", call(unix.SYS_SHMAT), allowed, refused, refused},
		{"its end", call(unix.SYS_SHMCTL), allowed, refused, refused},
		{"a semaphore", call(unix.SYS_SEMGET), allowed, refused, refused},
		{"a step of it", call(unix.SYS_SEMOP), allowed, refused, refused},
		{"a step in time", call(unix.SYS_SEMTIMEDOP), allowed, refused, refused},
		{"its value", call(unix.SYS_SEMCTL), allowed, refused, refused},
		{"a System V queue", call(unix.SYS_MSGGET), allowed, refused, refused},
		{"sending there", call(unix.SYS_MSGSND), allowed, refused, refused},
		{"receiving there", call(unix.SYS_MSGRCV), allowed, refused, refused},
		{"its state", call(unix.SYS_MSGCTL), allowed, refused, refused},
		{"a POSIX queue", call(unix.SYS_MQ_OPEN), allowed, refused, refused},
		{"removing it", call(unix.SYS_MQ_UNLINK), allowed, refused, refused},
		{"a connection", call(unix.SYS_CONNECT), allowed, allowed, refused},
		{"a unix socket", call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM|flags), allowed, allowed, allowed},
		{"one for datagrams", call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_DGRAM|flags), allowed, allowed, refused},
		{"a pair", call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM|flags), allowed, allowed, allowed},
		{"a pair for packets", call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_SEQPACKET|flags), allowed, allowed, allowed},
		{"a pair for datagrams", call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM|flags), allowed, allowed, refused},
		{"TCP", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|flags), allowed, allowed, noFamily},
		{"UDP of version 6", call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM|flags), allowed, allowed, noFamily},
		{"a raw socket", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW|flags), refused, refused, noFamily},
		{"a raw one of version 6", call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_RAW), refused, refused, noFamily},
		// The kernel makes a socket of AF_PACKET of it (packet(7)).
		{"a packet socket by its old name", call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_PACKET), refused, refused, noFamily},
		{"a packet socket", call(unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW), noFamily, noFamily, noFamily},
		{"addresses and routes", call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE), allowed, allowed, noFamily},
		{"more of netlink", call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER), refused, refused, noFamily},
		{"the virtual machine's host", call(unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM), noFamily, noFamily, noFamily},
		{"cryptography", call(unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET), noFamily, noFamily, noFamily},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, of := range []struct {
				filter *Filter
				want   uint32
			}{{openFilter, tt.open}, {networkFilter, tt.network}, {closedFilter, tt.closed}} {
				if got := of.filter.answerTo(t, tt.call); got != of.want {
					t.Errorf("%+v: %v is answered %#x, want %#x", of.filter, tt.call, got, of.want)
				}
			}
		})
	}
	if _, err := (&Filter{Sockets: "any"}).program(); err == nil {
		t.Error("there is a filter for unknown sockets")
	}
}
