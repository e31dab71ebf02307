package sdktest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// set limits a process that has just started, and the processes that it starts.
func (l Limits) set(pid int) error {
	for _, limit := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"memory", unix.RLIMIT_DATA, uint64(l.Memory)},
		{"file_size", unix.RLIMIT_FSIZE, uint64(l.FileSize)},
		{"open_files", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"processes", unix.RLIMIT_NPROC, l.Processes},
	} {
		if limit.value == 0 {
			continue
		}
		if err := unix.Prlimit(pid, limit.resource, &unix.Rlimit{Cur: limit.value, Max: limit.value}, nil); err != nil {
			return fmt.Errorf("set %s to %d: %w", limit.name, limit.value, err)
		}
	}
	return nil
}
