package launch

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The answers of a filter (linux/seccomp.h).
const (
	answerAllow = 0x7fff0000
	answerErrno = 0x00050000 // with the error number in the low bits
	answerKill  = 0x80000000 // kills the process
)

// install installs the filter for the calling thread and the program that it executes.
func (f *Filter) install() error {
	program, err := f.program()
	if err != nil {
		return err
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	fprog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog))) //nolint:gosec // the argument of the system call
	if errno != 0 {
		return errno
	}
	return nil
}

// denied returns the calls that are refused with EPERM. They inspect or control other
// processes, change mounts, create namespaces, load code into the kernel, reach files
// without paths, or change the system.
func (f *Filter) denied() []int {
	calls := []int{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE,
		unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT,
		unix.SYS_FSPICK, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
		unix.SYS_UNSHARE, unix.SYS_SETNS,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
		unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
		unix.SYS_SYSLOG, unix.SYS_VHANGUP, unix.SYS_PERSONALITY, unix.SYS_LOOKUP_DCOOKIE,
	}
	calls = append(calls, deniedHere()...)
	if !f.IPC {
		calls = append(calls, unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
			unix.SYS_SEMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK)
	}
	if !f.Memfd {
		calls = append(calls, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET)
	}
	if !f.Metadata {
		calls = append(calls, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_SETXATTRAT,
			unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR)
		calls = append(calls, metadataHere()...)
	}
	if f.Sockets == SocketsListen {
		calls = append(calls, unix.SYS_CONNECT)
	}
	slices.Sort(calls)
	return calls
}

// unknown returns the calls that are answered as if the kernel did not have them, so
// that programs work without them. clone3 passes its flags where no filter can read
// them.
func unknown() []int {
	return []int{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3}
}

// program returns the filter's instructions.
func (f *Filter) program() ([]bpf.Instruction, error) {
	if architecture == 0 {
		return nil, errors.New("there is no filter for this processor")
	}
	b := filterBuilder{}
	b.add(load(4), bpf.JumpIf{Cond: bpf.JumpEqual, Val: architecture, SkipTrue: 1}, answer(answerKill))
	b.add(load(0))
	// The calls of other ABIs of the same processor (x32) have numbers from here on.
	b.add(bpf.JumpIf{Cond: bpf.JumpLessThan, Val: 0x40000000, SkipTrue: 1}, answer(answerErrno|uint32(unix.ENOSYS)))
	for _, call := range f.denied() {
		b.on(call, answer(refused))
	}
	for _, call := range unknown() {
		b.on(call, answer(answerErrno|uint32(unix.ENOSYS)))
	}
	// No namespaces: clone(flags & CLONE_NEW*).
	b.on(unix.SYS_CLONE, load(argument(cloneFlags)), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: newNamespaces, SkipTrue: 1}, answer(refused))
	// The program may not change limits and priorities of other processes: only 0, the
	// process itself.
	for _, call := range []int{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR} {
		b.on(call, load(argument(0)), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, answer(refused))
	}
	// For these calls, 0 may also mean all processes of the user.
	for call, ofUser := range map[int]uint32{unix.SYS_SETPRIORITY: unix.PRIO_USER, unix.SYS_IOPRIO_SET: ioprioOfUser} {
		b.on(call, load(argument(0)), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: ofUser, SkipTrue: 1}, answer(refused),
			load(argument(1)), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, answer(refused))
	}
	// The program may not type into a terminal for its user.
	b.on(unix.SYS_IOCTL, load(argument(1)),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.TIOCSTI, SkipTrue: 1}, answer(refused),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.TIOCLINUX, SkipTrue: 1}, answer(refused))
	// The limits do not count memory that grows by itself when it is mapped.
	growing := []bpf.Instruction{
		load(argument(3)), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.MAP_GROWSDOWN, SkipTrue: 1}, answer(answerErrno | uint32(unix.ENOMEM)),
	}
	if f.SharedMemory {
		b.on(unix.SYS_MMAP, growing...)
	} else {
		const sharedMemory = unix.MAP_SHARED | unix.MAP_ANONYMOUS
		b.on(unix.SYS_MMAP, append(growing, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: sharedMemory},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: sharedMemory, SkipTrue: 1}, answer(answerErrno|uint32(unix.ENOMEM)))...)
	}
	switch f.Sockets {
	case SocketsListen:
		b.on(unix.SYS_SOCKET, load(argument(0)),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1}, answer(noFamily),
			load(argument(1)), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: socketType},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 1}, answer(refused))
		// Each end of a pair of datagram sockets could send to any socket.
		b.on(unix.SYS_SOCKETPAIR, load(argument(1)), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: socketType},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1}, answer(refused))
	case SocketsNetwork:
		const allow = 13 // the instruction after the last one here
		b.on(unix.SYS_SOCKET, load(argument(0)),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: allow - 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_NETLINK, SkipTrue: 7},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
			answer(noFamily),
			load(argument(1)), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: socketType},
			// TCP and UDP have lower numbers. SOCK_PACKET, which AF_INET accepts too, sees all
			// traffic.
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: unix.SOCK_RAW, SkipFalse: allow - 9}, answer(refused),
			// Netlink only for addresses and routes.
			load(argument(2)), bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.NETLINK_ROUTE, SkipTrue: 1}, answer(refused))
	default:
		return nil, fmt.Errorf("unknown kind of sockets %q", f.Sockets)
	}
	b.add(answer(answerAllow))
	return b.p, nil
}

const (
	refused  = answerErrno | uint32(unix.EPERM)
	noFamily = answerErrno | uint32(unix.EAFNOSUPPORT)
	// newNamespaces are CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER,
	// NEWPID and NEWNET.
	newNamespaces = 0x7e020080
	// ioprioOfUser is IOPRIO_WHO_USER (linux/ioprio.h).
	ioprioOfUser = 3
	// socketType is the mask of a socket's type without its flags.
	socketType = 0xf
)

// filterBuilder builds a filter. The number of the call is loaded before each part.
type filterBuilder struct{ p []bpf.Instruction }

func (b *filterBuilder) add(instructions ...bpf.Instruction) { b.p = append(b.p, instructions...) }

// on runs body for one call. If body reaches its end, the call is allowed.
func (b *filterBuilder) on(call int, body ...bpf.Instruction) {
	body = append(body, answer(answerAllow))
	b.add(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(call), SkipTrue: uint8(len(body))})
	b.add(body...)
}

// load loads a word of struct seccomp_data.
func load(offset uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: offset, Size: 4} }

// argument returns the offset of the low word of an argument, on a little-endian
// processor.
func argument(n int) uint32 { return uint32(16 + 8*n) }

func answer(value uint32) bpf.Instruction { return bpf.RetConstant{Val: value} }
