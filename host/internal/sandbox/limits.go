package sandbox

import (
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Limits bound what one process may use. They become resource limits
// (setrlimit(2)), soft and hard alike, before the program starts, and its
// children inherit them. Zero means no limit, except for Core.
type Limits struct {
	// Memory is RLIMIT_DATA: heap and private writable mappings of each
	// process. A Go plugin needs at least [MinMemory].
	Memory tool.ByteSize `json:"memory,omitempty"`
	// OpenFiles is RLIMIT_NOFILE.
	OpenFiles uint64 `json:"open_files,omitempty"`
	// Processes is RLIMIT_NPROC. It counts all processes and threads of the
	// user, not those of the plugin, and root is exempt.
	Processes uint64 `json:"processes,omitempty"`
	// FileSize is RLIMIT_FSIZE, the largest file that can be written.
	FileSize tool.ByteSize `json:"file_size,omitempty"`
	// Stack is RLIMIT_STACK.
	Stack tool.ByteSize `json:"stack,omitempty"`
	// Core is RLIMIT_CORE; 0 means that no core file is written.
	Core tool.ByteSize `json:"core"`
	// CPUTime is RLIMIT_CPU, in whole seconds over the process's whole life.
	CPUTime time.Duration `json:"cpu_time,omitempty"`
	// AddressSpace is RLIMIT_AS. A Go program reserves about a GiB of address
	// space at its start, so small values keep it from starting.
	AddressSpace tool.ByteSize `json:"address_space,omitempty"`
}

// MinMemory is the least Memory with which a Go plugin with TLS starts
// reliably (measured: about 160 MiB).
const MinMemory = 192 * tool.MiB

// DefaultLimits are the limits of a plugin for which nothing else is
// configured.
func DefaultLimits() Limits {
	return Limits{
		Memory:    512 * tool.MiB,
		OpenFiles: 256,
		FileSize:  256 * tool.MiB,
		Stack:     8 * tool.MiB,
	}
}
