package proc

import (
	"time"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Limits bound the resources of each process of a command. They become resource limits
// (setrlimit(2)), soft and hard alike. Zero means the plugin's own limit, which is the
// maximum, except for Processes. Core files are never written.
type Limits struct {
	// CPUTime is RLIMIT_CPU, in whole seconds. A process that has used it up receives SIGXCPU,
	// and a second later SIGKILL.
	CPUTime time.Duration
	// Memory is RLIMIT_DATA: heap and private writable mappings.
	Memory tool.ByteSize
	// FileSize is RLIMIT_FSIZE, the largest file that can be written.
	FileSize tool.ByteSize
	// OpenFiles is RLIMIT_NOFILE.
	OpenFiles uint64
	// Processes is RLIMIT_NPROC. It counts all processes and threads of the account, not only
	// those of the command; root is exempt. Zero means three quarters of the plugin's own soft
	// limit, so that commands cannot keep the plugin from working.
	Processes uint64
}

// check refuses values that no resource limit can have.
func (l Limits) check() error {
	if l.Memory < 0 || l.FileSize < 0 {
		return invalid("a limit is negative: memory %d bytes, file_size %d bytes", l.Memory, l.FileSize)
	}
	if l.CPUTime < 0 || l.CPUTime%time.Second != 0 {
		return invalid("limit cpu_time is %v, expected whole seconds", l.CPUTime)
	}
	return nil
}
