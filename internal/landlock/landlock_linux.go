package landlock

import (
	"errors"
	"fmt"
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
	// ofFiles are the rights that a file can have. The others are those of
	// directories.
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

// ABI returns the version of Landlock that the kernel has, from 1 on, or why it
// has none.
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

// Restrict restricts the calling thread and what it starts from now on, for ever,
// and returns the kernel's ABI. Other threads of the process go on as before, so
// the caller locks its goroutine to the thread and executes another program. It
// needs no_new_privs or CAP_SYS_ADMIN.
func Restrict(r Rules) (abi int, err error) {
	if abi, err = ABI(); err != nil {
		return 0, err
	}
	attr := unix.LandlockRulesetAttr{Access_fs: handled(abi)}
	if r.Scoped && abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // as the call takes it
	if errno != 0 {
		return 0, fmt.Errorf("make a Landlock ruleset: %w", errno)
	}
	rules := ruleset{fd: int(fd), handled: attr.Access_fs}
	defer func() { _ = unix.Close(rules.fd) }() // nothing is buffered
	if err := rules.fill(r); err != nil {
		return 0, err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return 0, fmt.Errorf("apply the Landlock ruleset: %w", errno)
	}
	return abi, nil
}

// ruleset is what is being made.
type ruleset struct {
	fd      int
	handled uint64
}

func (s ruleset) fill(r Rules) error {
	for _, list := range []struct {
		paths  []string
		rights uint64
	}{{r.Read, read}, {r.Execute, execute}, {r.Write, write}, {r.Devices, devices}} {
		for _, path := range list.paths {
			if err := s.allow(path, list.rights); err != nil {
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

func (s ruleset) allow(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing is buffered
	return s.allowFile(fd, rights)
}

func (s ruleset) allowFile(fd int, rights uint64) error {
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
