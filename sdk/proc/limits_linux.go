package proc

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// defaultOpenFiles is the default soft limit of open files. Some programs do not work with
// more, and Go raises the plugin's own.
const defaultOpenFiles = 1024

// keptProcesses is the fraction of its processes that the plugin keeps from commands without
// their own limit. The kernel counts all processes of an account together, and a Go program that
// cannot start a thread ends, with all of its commands.
const keptProcesses = 4

// limit is one limit in the form of setrlimit(2).
type limit struct {
	name       string
	resource   int
	soft, hard uint64
}

// resources returns the limits to set. A limit above the plugin's own is an error: as root,
// the command could get more than the plugin has.
func (l Limits) resources() ([]limit, error) {
	set := []limit{{name: "core", resource: unix.RLIMIT_CORE}}
	for _, asked := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"file_size", unix.RLIMIT_FSIZE, uint64(l.FileSize)},
		{"open_files", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"cpu_time", unix.RLIMIT_CPU, uint64(l.CPUTime / time.Second)},
		{"processes", unix.RLIMIT_NPROC, l.Processes},
		{"memory", unix.RLIMIT_DATA, uint64(l.Memory)},
	} {
		var own unix.Rlimit
		if err := unix.Getrlimit(asked.resource, &own); err != nil {
			return nil, fmt.Errorf("ask for the plugin's own limit %s: %w", asked.name, err)
		}
		hard := own.Max
		switch {
		case asked.value > hard:
			return nil, invalid("limit %s is %d, but the plugin itself is limited to %d", asked.name, asked.value, hard).
				WithHint("ask for %d at most", hard)
		case asked.value > 0 && asked.resource == unix.RLIMIT_CPU:
			// SIGXCPU comes before SIGKILL, and shows what ended the command.
			set = append(set, limit{asked.name, asked.resource, asked.value, min(asked.value+1, hard)})
		case asked.value > 0:
			set = append(set, limit{asked.name, asked.resource, asked.value, asked.value})
		case asked.resource == unix.RLIMIT_NOFILE:
			set = append(set, limit{asked.name, asked.resource, min(defaultOpenFiles, hard), hard})
		case asked.resource == unix.RLIMIT_NPROC && own.Cur != unix.RLIM_INFINITY:
			most := own.Cur - own.Cur/keptProcesses // the soft limit is what keeps the plugin from starting more
			set = append(set, limit{asked.name, asked.resource, most, most})
		}
	}
	return set, nil
}
