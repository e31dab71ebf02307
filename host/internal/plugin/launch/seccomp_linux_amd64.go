package launch

import "golang.org/x/sys/unix"

const (
	// architecture is the architecture of the filter. Calls that are made as on a 386
	// (int 0x80) have another one.
	architecture = unix.AUDIT_ARCH_X86_64
	// cloneFlags is the index of the flags in the arguments of clone(2).
	cloneFlags = 0
)

// metadataHere returns older calls that change modes and owners by name.
func metadataHere() []int { return []int{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN} }

// deniedHere returns denied calls that other processors do not have.
func deniedHere() []int {
	return []int{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL}
}
