package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/landlock"
)

// confine applies everything but the limits to this process. The confinement stays in
// force after execve(2). The steps are ordered by the rights that they need: each step
// removes rights that the next ones do not need.
func (o *Order) confine() (*Details, error) {
	var done Details
	if err := closeDescriptors(o.Script); err != nil {
		return nil, err
	}
	unix.Umask(0o077)
	if o.Loopback {
		if err := bringUpLoopback(); err != nil {
			done.NoLoopback = err.Error()
		}
	}
	if o.Proxy != 0 {
		if err := inLayer("netns", "listen for the proxy", listen(o.Proxy)); err != nil {
			return nil, err
		}
	}
	if o.Mounts != nil {
		if err := o.Mounts.make(o.Script); err != nil {
			return nil, err
		}
	}
	if err := unix.Chdir(string(o.Dir)); err != nil {
		return nil, fmt.Errorf("enter the working directory %s: %w", o.Dir, err)
	}
	// Processes that the program starts stay below it even if they detach themselves,
	// so that the host finds them.
	if err := prctl(unix.PR_SET_CHILD_SUBREAPER, 1); err != nil {
		return nil, fmt.Errorf("set subreaper: %w", err)
	}
	files, err := o.openRules()
	if err != nil {
		return nil, err
	}
	if err := o.becomeUser(); err != nil {
		return nil, err
	}
	done.ReadOnly = o.readOnly()
	if err := prctl(unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return nil, fmt.Errorf("set no_new_privs: %w", err)
	}
	// A change of credentials clears this, so it comes after them.
	if err := prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL)); err != nil {
		return nil, fmt.Errorf("set pdeathsig: %w", err)
	}
	// A process in its own PID namespace does not see its parent. Then sending the
	// report fails if the host is gone.
	if parent := os.Getppid(); parent != o.Host && parent != 0 {
		return nil, fmt.Errorf("the host (process %d) is gone", o.Host)
	}
	if files != nil {
		done.Landlock = files.ABI()
		if err := inLayer("landlock", "restrict access to files", files.Restrict()); err != nil {
			return nil, err
		}
	}
	if o.Seccomp != nil {
		if err := inLayer("seccomp", "filter system calls", o.Seccomp.install()); err != nil {
			return nil, err
		}
	}
	return &done, nil
}

// openRules opens the paths of the access rules while this process can reach them
// all.
func (o *Order) openRules() (*landlock.Ruleset, error) {
	if o.Landlock == nil {
		return nil, nil
	}
	rules, err := landlock.New(landlock.Rules{
		Read: stringsOf(o.Landlock.Read), Execute: stringsOf(o.Landlock.Exec), ExecuteFiles: []int{ProgramFD},
		Write: stringsOf(o.Landlock.Write), Devices: stringsOf(o.Landlock.Devices), Scoped: true, Resolved: true,
	})
	return rules, inLayer("landlock", "set up access rules for files", err)
}

// becomeUser gives up all rights beyond those of the program's user.
func (o *Order) becomeUser() error {
	if o.NoCaps {
		if err := inLayer("caps", "drop capabilities", dropBoundingSet()); err != nil {
			return err
		}
	}
	if o.User != nil {
		if err := inLayer("run_as", fmt.Sprintf("become user %d", o.User.UID), o.User.become()); err != nil {
			return err
		}
	}
	if o.NoCaps {
		if err := inLayer("caps", "drop capabilities", dropCapabilities()); err != nil {
			return err
		}
	}
	if o.User == nil {
		return nil
	}
	for _, path := range o.Reach {
		// The kernel checks an open for the effective user.
		err := unix.Faccessat(unix.AT_FDCWD, string(path), unix.R_OK|unix.X_OK, unix.AT_EACCESS)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return inLayer("run_as", fmt.Sprintf("user %d cannot reach %s", o.User.UID, path), err)
		}
	}
	return nil
}

// readOnly returns the directories that the user should be able to write but cannot.
func (o *Order) readOnly() []Bytes {
	return slices.DeleteFunc(slices.Clone(o.Writable), func(path Bytes) bool {
		return unix.Faccessat(unix.AT_FDCWD, string(path), unix.W_OK, unix.AT_EACCESS) == nil
	})
}

// become changes the user of the thread that will execute the program. Package syscall
// would stop all threads and change each, but the others do not survive execve(2).
func (u *User) become() error {
	if u.Groups {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			return fmt.Errorf("drop groups: %w", errno)
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(u.GID), uintptr(u.GID), uintptr(u.GID)); errno != 0 {
		return fmt.Errorf("set group %d: %w", u.GID, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(u.UID), uintptr(u.UID), uintptr(u.UID)); errno != 0 {
		return fmt.Errorf("set user %d: %w", u.UID, errno)
	}
	return nil
}

// dropBoundingSet prevents gaining capabilities by executing a file.
func dropBoundingSet() error {
	for capability := range uintptr(64) {
		err := prctl(unix.PR_CAPBSET_DROP, capability)
		if errors.Is(err, unix.EINVAL) {
			break // the kernel has no further capabilities
		}
		if errors.Is(err, unix.EPERM) && os.Geteuid() != 0 {
			return nil // an ordinary user has no capabilities, and no_new_privs keeps it so
		}
		if err != nil {
			return err
		}
	}
	// User 0 permanently becomes an ordinary user.
	return prctl(unix.PR_SET_SECUREBITS, secureBits)
}

// From linux/securebits.h: NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each
// with its lock, and KEEP_CAPS_LOCKED.
const secureBits = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

func dropCapabilities() error {
	if err := prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// closeDescriptors leaves the program only standard input, output and error. A script
// also keeps its own file, which the interpreter must open.
func closeDescriptors(script bool) error {
	if err := unix.CloseRange(ProgramFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors (needs Linux 5.11): %w", err)
	}
	if !script {
		return nil
	}
	if _, err := unix.FcntlInt(ProgramFD, unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("keep the script open: %w", err)
	}
	return nil
}

func bringUpLoopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }() // nothing is buffered
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
}

// listen opens a socket on a port of the loopback address and sends it to the host, which
// accepts connections from the namespace there. This process keeps nothing of it.
func listen(port int) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }() // the host has it
	if err := unix.Bind(s, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(s, unix.SOMAXCONN); err != nil {
		return err
	}
	defer func() { _ = unix.Close(ProxyFD) }() // it was only written
	return unix.Sendmsg(ProxyFD, []byte{0}, unix.UnixRights(s), nil, 0)
}

// program prepares to execute the program by its descriptor, since the path may name another
// file now.
func (o *Order) program() func() error {
	file := "/proc/self/fd/" + strconv.Itoa(ProgramFD)
	argv := append([]string{string(o.Path)}, stringsOf(o.Args)...)
	env := stringsOf(o.Env)
	if _, err := os.Stat(file); err == nil || o.Script { // the interpreter opens the script by this name
		return func() error { return syscall.Exec(file, argv, env) } //nolint:gosec // the order names the program
	}
	argvp, err := syscall.SlicePtrFromStrings(argv)
	if err != nil {
		return func() error { return err }
	}
	envp, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return func() error { return err }
	}
	var empty byte
	return func() error {
		//nolint:gosec // the arguments of the system call
		_, _, errno := syscall.RawSyscall6(unix.SYS_EXECVEAT, ProgramFD, uintptr(unsafe.Pointer(&empty)),
			uintptr(unsafe.Pointer(&argvp[0])), uintptr(unsafe.Pointer(&envp[0])), unix.AT_EMPTY_PATH, 0)
		return errno
	}
}

func prctl(option int, value uintptr) error {
	return unix.Prctl(option, value, 0, 0, 0)
}
