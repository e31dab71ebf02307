package landlock

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	execute = unix.LANDLOCK_ACCESS_FS_EXECUTE | read
	read    = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	devices = read | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// write is everything but to make devices, to control them, and to execute.
	write = read | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	// ofFiles are the rights that apply to a file. The others apply to directories.
	ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// handled returns the rights that a kernel of an ABI knows.
func handled(abi int) uint64 {
	all := uint64(1<<13 - 1)
	for _, later := range []struct {
		abi   int
		right uint64
	}{
		{2, unix.LANDLOCK_ACCESS_FS_REFER},
		{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	} {
		if abi >= later.abi {
			all |= later.right
		}
	}
	return all
}

// ABI returns the kernel's version of Landlock, from 1 on, or why there is none.
func ABI() (int, error) {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errors.Is(errno, unix.ENOSYS):
		return 0, errors.New("the kernel has none (Linux 5.13, CONFIG_SECURITY_LANDLOCK)")
	case errors.Is(errno, unix.EOPNOTSUPP):
		return 0, errors.New("it is switched off at boot (kernel parameter lsm=)")
	case errno != 0:
		return 0, fmt.Errorf("ask the kernel for its version: %w", errno)
	}
	return int(abi), nil
}

// Ruleset is made of rules and can be applied once.
type Ruleset struct {
	fd      int
	abi     int
	handled uint64
}

// New opens the listed files and makes a ruleset for them. It needs only the rights to reach the
// paths. Applying the ruleset closes it.
func New(r Rules) (*Ruleset, error) {
	abi, err := ABI()
	if err != nil {
		return nil, err
	}
	attr := unix.LandlockRulesetAttr{Access_fs: handled(abi)}
	if r.Scoped && abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // as the call takes it
	if errno != 0 {
		return nil, fmt.Errorf("make a Landlock ruleset: %w", errno)
	}
	s := &Ruleset{fd: int(fd), abi: abi, handled: attr.Access_fs}
	if err := s.fill(r); err != nil {
		_ = unix.Close(s.fd) // nothing is buffered
		return nil, err
	}
	return s, nil
}

// ABI returns the version of Landlock that the ruleset is made for.
func (s *Ruleset) ABI() int { return s.abi }

// Restrict permanently restricts the calling thread and everything it starts from now on.
// Other threads of the process are not affected, so the caller locks its goroutine to the
// thread and executes another program. It needs no_new_privs or CAP_SYS_ADMIN.
func (s *Ruleset) Restrict() error {
	defer func() { _ = unix.Close(s.fd) }() // nothing is buffered
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(s.fd), 0, 0); errno != 0 {
		return fmt.Errorf("apply the Landlock ruleset: %w", errno)
	}
	return nil
}

func (s *Ruleset) fill(r Rules) error {
	for _, list := range []struct {
		paths  []string
		rights uint64
	}{{r.Read, read}, {r.Execute, execute}, {r.Write, write}, {r.Devices, devices}} {
		for _, path := range list.paths {
			if err := s.allow(path, list.rights, r.Resolved); err != nil {
				return fmt.Errorf("allow %s: %w", path, err)
			}
		}
	}
	for _, fd := range r.ExecuteFiles {
		if err := s.allowFile(fd, execute); err != nil {
			return fmt.Errorf("allow descriptor %d: %w", fd, err)
		}
	}
	return nil
}

func (s *Ruleset) allow(path string, rights uint64, resolved bool) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	if resolved && !strings.HasPrefix(path, "/proc/") {
		how.Resolve = unix.RESOLVE_NO_SYMLINKS
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	// An unreachable path needs no rule. A program that can make one path unreachable must not
	// be able to remove all rules that way.
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing is buffered
	return s.allowFile(fd, rights)
}

func (s *Ruleset) allowFile(fd int, rights uint64) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & s.handled, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(s.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // as the call takes it
	if errno != 0 {
		return errno
	}
	return nil
}
