package launch

import "golang.org/x/sys/unix"

const (
	// architecture is what the filter is for. Calls of 32 bits are another's.
	architecture = unix.AUDIT_ARCH_AARCH64
	// cloneFlags is which argument of clone(2) its flags are.
	cloneFlags = 0
)

func metadataHere() []int { return nil }

// deniedHere are calls that other processors do not have.
func deniedHere() []int { return []int{unix.SYS_KEXEC_FILE_LOAD} }
