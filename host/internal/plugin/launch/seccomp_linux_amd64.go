package launch

import "golang.org/x/sys/unix"

const (
	// architecture is what the filter is for. Calls that are made as on a 386
	// (int 0x80) are another's.
	architecture = unix.AUDIT_ARCH_X86_64
	// cloneFlags is which argument of clone(2) its flags are.
	cloneFlags = 0
)

// metadataHere are older calls that change modes and owners by names.
func metadataHere() []int { return []int{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN} }

// deniedHere are calls that other processors do not have.
func deniedHere() []int {
	return []int{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL}
}
