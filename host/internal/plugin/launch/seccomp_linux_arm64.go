package launch

import "golang.org/x/sys/unix"

const (
	// architecture is the filter's architecture. 32-bit calls belong to another.
	architecture = unix.AUDIT_ARCH_AARCH64
	// cloneFlags is which argument of clone(2) its flags are.
	cloneFlags = 0
)

func metadataHere() []int { return nil }

// deniedHere are calls that other processors do not have.
func deniedHere() []int { return []int{unix.SYS_KEXEC_FILE_LOAD} }
