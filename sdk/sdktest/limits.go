package sdktest

import (
	"fmt"

	"github.com/toolhost/toolhost/internal/memlimit"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Limits are the resource limits (setrlimit(2)) of a plugin's process and of each of its
// children, as in the block "limits" of a host's configuration. Zero means no limit. They
// need Linux.
type Limits struct {
	// Memory is RLIMIT_DATA: heap and private writable mappings. The process also
	// gets the GOMEMLIMIT that a host derives from it.
	Memory tool.ByteSize
	// FileSize is RLIMIT_FSIZE, the largest file that can be written.
	FileSize tool.ByteSize
	// OpenFiles is RLIMIT_NOFILE.
	OpenFiles uint64
	// Processes is RLIMIT_NPROC. It counts all processes and threads of the user,
	// and root is exempt.
	Processes uint64
}

// check refuses limits with which no plugin can start.
func (l Limits) check() error {
	switch {
	case l.Memory != 0 && l.Memory < memlimit.Min:
		return fmt.Errorf("memory is limited to %v, expected %v or more, which Go needs to start", l.Memory, tool.ByteSize(memlimit.Min))
	case l.FileSize < 0:
		return fmt.Errorf("file_size is limited to %d bytes, expected more", l.FileSize)
	default:
		return nil
	}
}

// environ returns the environment variables that a host sets for the limits.
func (l Limits) environ() []string {
	if l.Memory == 0 {
		return nil
	}
	return []string{fmt.Sprintf("GOMEMLIMIT=%d", memlimit.Heap(int64(l.Memory)))}
}
