package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelAttacks reach for parts of the kernel that serve to leave a sandbox, or
// that have more mistakes than others.
func kernelAttacks() []attack {
	call := func(name string) func(*scene) attempt {
		return func(*scene) attempt { return attempt{program: []string{"call", name}} }
	}
	// Machines differ in whom they let use these. Where this process may not, the
	// control shows that the test would see it if the program might.
	offered := func(name string) func(*scene) attempt {
		return func(*scene) attempt {
			at := attempt{program: []string{"call", name}}
			if kernelCalls()[name]() != nil {
				at.control, at.impossible = instead("done"), true
			}
			return at
		}
	}
	const capability = "it takes a capability"
	list := []attack{
		{name: "mount a file system", root: all, rootOnly: capability, stage: call("mount")},
		{name: "make a read-only mount writable", root: all, rootOnly: capability, stage: call("writable")},
		{name: "change its root directory (`chroot`)", root: all, rootOnly: capability, stage: call("chroot")},
		{name: "leave a namespace (`unshare`)", root: all, rootOnly: capability, stage: call("unshare")},
		{name: "enter a namespace (`setns`)", root: all, rootOnly: capability, stage: call("setns")},
		{name: "gain capabilities in a user namespace of its own (`clone`), and mount", root: all, stage: call("usermount")},
		{name: "have another root in a user namespace of its own (`pivot_root`)", root: all, stage: call("userpivot")},
		{name: "make a user namespace by `clone3`", root: all, stage: call("clone3")},
		{name: "change the system's settings (`/proc/sys/kernel/core_pattern`)", root: all, rootOnly: "the file is root's", stage: call("corepattern")},
		{name: "make a control group, to leave its own", root: all, rootOnly: "the files are root's", stage: offered("cgroup")},
		{name: "load code into the kernel (`bpf`)", root: all, stage: offered("bpf")},
		{name: "keep a secret in the kernel (`add_key`)", root: all, stage: offered("addkey")},
		{name: "measure the machine (`perf_event_open`)", root: all, stage: offered("perf")},
		{name: "hold the kernel up (`userfaultfd`)", root: all, stage: offered("userfaultfd")},
		{name: "make system calls that no filter sees (`io_uring`)", root: all, stage: offered("iouring")},
		{name: "make system calls by the numbers of another ABI (x32)", root: all, by: "no such call", stage: func(*scene) attempt {
			// Few kernels have it: then the control is the same call by its own number.
			at := attempt{program: []string{"call", "x32"}}
			if kernelCalls()["x32"]() != nil {
				at.control = instead("call", "getpid")
			}
			return at
		}},
	}
	return append(list, otherABIAttacks()...)
}

// kernelPrograms are the programs of kernelAttacks.
func kernelPrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"call": func(args []string) error {
			runtime.LockOSThread()
			act, ok := kernelCalls()[args[0]]
			if !ok {
				return fmt.Errorf("call %q", args[0])
			}
			if err := act(); err != nil {
				return err
			}
			return done()
		},
	}
}

// kernelCalls return nil if the kernel has done what they ask for.
func kernelCalls() map[string]func() error {
	calls := map[string]func() error{
		"mount": func() error {
			if err := unix.Mount("tmpfs", "bin", "tmpfs", 0, ""); err != nil {
				return err
			}
			return unix.Unmount("bin", 0)
		},
		"writable": func() error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, ".git/hooks", unix.OPEN_TREE_CLONE)
			if err != nil {
				return err
			}
			return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		},
		"chroot":  func() error { return unix.Chroot(".") },
		"unshare": func() error { return unix.Unshare(unix.CLONE_NEWUTS) },
		"setns": func() error {
			f, err := os.Open("/proc/self/ns/uts")
			if err != nil {
				return err
			}
			return unix.Setns(int(f.Fd()), unix.CLONE_NEWUTS)
		},
		"usermount": func() error { return inUserNamespace("mount") },
		"userpivot": func() error { return inUserNamespace("pivot") },
		"pivot": func() error {
			if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
				return err
			}
			if err := unix.Mount("tmpfs", "bin", "tmpfs", 0, ""); err != nil {
				return err
			}
			return unix.PivotRoot("bin", "bin")
		},
		"clone3": func() error {
			// struct clone_args: flags first, the signal of the end fifth.
			arguments := [8]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
			return reapChild(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&arguments)), unsafe.Sizeof(arguments))
		},
		"corepattern": func() error {
			const setting = "/proc/sys/kernel/core_pattern"
			text, err := os.ReadFile(setting)
			if err != nil {
				return err
			}
			return os.WriteFile(setting, text, 0) // as it is: it holds for the whole machine
		},
		"cgroup": func() error {
			mounts, err := os.ReadFile("/proc/self/mountinfo")
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(mounts)) {
				before, after, _ := strings.Cut(line, " - ")
				if fields := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
					dir := filepath.Join(fields[4], fmt.Sprintf("toolhost-escape-%d", os.Getpid()))
					return errors.Join(os.Mkdir(dir, 0o755), os.Remove(dir))
				}
			}
			return errors.New("there are no control groups")
		},
		"bpf": func() error {
			// BPF_MAP_CREATE of an array: type, size of a key, of a value, entries.
			attributes := [16]uint32{2, 4, 4, 1}
			return opens(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes))
		},
		"addkey": func() error {
			_, err := unix.AddKey("user", "toolhost-attack", []byte("attack"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		},
		"perf": func() error {
			fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{
				Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Size: unix.PERF_ATTR_SIZE_VER0,
				Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
			}, 0, -1, -1, 0)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		},
		"userfaultfd": func() error {
			const userModeOnly = 1
			return opens(unix.SYS_USERFAULTFD, userModeOnly, 0, 0)
		},
		"iouring": func() error {
			var parameters [128]byte
			return opens(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)), 0)
		},
		"x32":    func() error { return callSelf(0x40000000 | unix.SYS_GETPID) },
		"getpid": func() error { return callSelf(unix.SYS_GETPID) },
	}
	maps.Copy(calls, otherABICalls())
	return calls
}

// opens makes a call that answers with a descriptor, and closes that.
func opens(call, a, b, c uintptr) error {
	fd, _, errno := unix.Syscall6(call, a, b, c, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

// callSelf makes a call that answers with the process's number.
func callSelf(number uintptr) error {
	pid, _, errno := unix.RawSyscall(number, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return isSelf(pid)
}

func isSelf(pid uintptr) error {
	if int(pid) != os.Getpid() {
		return fmt.Errorf("it answers %d", int(pid))
	}
	return nil
}

// inUserNamespace makes a call in a process that has all capabilities there.
func inUserNamespace(name string) error {
	return inProcess(name, &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
	})
}

// inChild makes a call in another process.
func inChild(name string) error { return inProcess(name, nil) }

func inProcess(name string, sys *syscall.SysProcAttr) error {
	cmd := exec.Command("/proc/self/exe", "attack", "call", name)
	cmd.SysProcAttr = sys
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// reapChild makes a call that forks. The child ends at once.
//
//go:norace
func reapChild(call, a, b uintptr) error {
	pid, _, errno := unix.RawSyscall(call, a, b, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

// forkPaused forks a process that does nothing.
//
//go:norace
func forkPaused() (int, error) {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	for pid == 0 {
		unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
	return int(pid), nil
}
