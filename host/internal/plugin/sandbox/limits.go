package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/host/internal/plugin/launch"
	"github.com/toolhost/toolhost/internal/memlimit"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Limits bound one process. They become resource limits (setrlimit(2)), soft and hard,
// before the program starts, and its children inherit them. Except for Core, zero sets no
// limit and leaves the host's own in force.
type Limits struct {
	// Memory is RLIMIT_DATA: the heap and private writable mappings of each process. A Go
	// plugin needs at least [MinMemory].
	Memory tool.ByteSize `json:"memory,omitempty"`
	// OpenFiles is RLIMIT_NOFILE.
	OpenFiles uint64 `json:"open_files,omitempty"`
	// Processes is RLIMIT_NPROC. It counts all processes and threads of the user, not only
	// those of the plugin, and root is exempt.
	Processes uint64 `json:"processes,omitempty"`
	// FileSize is RLIMIT_FSIZE, the largest file that can be written.
	FileSize tool.ByteSize `json:"file_size,omitempty"`
	// Stack is RLIMIT_STACK. A quarter of it holds arguments and environment.
	Stack tool.ByteSize `json:"stack,omitempty"`
	// Core is RLIMIT_CORE; 0 means that no core file is written.
	Core tool.ByteSize `json:"core"`
	// CPUTime is RLIMIT_CPU, in whole seconds over the life of the process. Then the process
	// is killed without a warning (SIGXCPU), which Go programs ignore.
	CPUTime time.Duration `json:"cpu_time,omitempty"`
	// CPUs bounds the processor time of the whole process tree, in processors: 0.5 is half of
	// one. It needs a control group. Without one there is no bound, and the [Report] says so.
	CPUs float64 `json:"cpus,omitempty"`
	// AddressSpace is RLIMIT_AS. A Go program reserves about a GiB of address space at its
	// start and does not start with less.
	AddressSpace tool.ByteSize `json:"address_space,omitempty"`
}

// MinMemory is the smallest Memory with which a Go plugin starts.
const MinMemory tool.ByteSize = memlimit.Min

// MinCPUs is the smallest value of CPUs: the kernel's smallest quota is 1 ms in 100 ms.
const MinCPUs = 0.01

// DefaultLimits returns the limits of a plugin without configured ones.
func DefaultLimits() Limits {
	return Limits{
		Memory:    512 * tool.MiB,
		OpenFiles: 256,
		FileSize:  256 * tool.MiB,
		Stack:     8 * tool.MiB,
	}
}

// String lists the limits by their names in the configuration, e.g. "memory 512MiB,
// open_files 256, core 0B".
func (l Limits) String() string {
	var parts []string
	add := func(name string, set bool, value any) {
		if set {
			parts = append(parts, fmt.Sprintf("%s %v", name, value))
		}
	}
	add("memory", l.Memory > 0, l.Memory)
	add("open_files", l.OpenFiles > 0, l.OpenFiles)
	add("processes", l.Processes > 0, l.Processes)
	add("file_size", l.FileSize > 0, l.FileSize)
	add("stack", l.Stack > 0, l.Stack)
	add("core", true, l.Core)
	add("cpu_time", l.CPUTime > 0, l.CPUTime)
	add("cpus", l.CPUs > 0, l.CPUs)
	add("address_space", l.AddressSpace > 0, l.AddressSpace)
	return strings.Join(parts, ", ")
}

// check refuses values that no resource limit can have.
func (l Limits) check() error {
	for _, size := range []struct {
		name  string
		value tool.ByteSize
	}{
		{"memory", l.Memory},
		{"file_size", l.FileSize},
		{"stack", l.Stack},
		{"core", l.Core},
		{"address_space", l.AddressSpace},
	} {
		if size.value < 0 {
			return fmt.Errorf("limit %s is negative (%d bytes)", size.name, size.value)
		}
	}
	if l.CPUs < 0 || l.CPUs > 0 && l.CPUs < MinCPUs {
		return fmt.Errorf("limit cpus is %v, expected at least %v", l.CPUs, MinCPUs)
	}
	if l.CPUTime < 0 || l.CPUTime%time.Second != 0 {
		return fmt.Errorf("limit cpu_time is %v, expected whole seconds", l.CPUTime)
	}
	return nil
}

// resources returns the limits to set, those that could affect the launcher last.
func (l Limits) resources() []launch.Limit {
	all := []launch.Limit{
		{Name: "core", Resource: unix.RLIMIT_CORE, Value: uint64(l.Core)},
		{Name: "file_size", Resource: unix.RLIMIT_FSIZE, Value: uint64(l.FileSize)},
		{Name: "open_files", Resource: unix.RLIMIT_NOFILE, Value: l.OpenFiles},
		{Name: "cpu_time", Resource: unix.RLIMIT_CPU, Value: uint64(l.CPUTime / time.Second)},
		{Name: "stack", Resource: unix.RLIMIT_STACK, Value: uint64(l.Stack)},
		{Name: "processes", Resource: unix.RLIMIT_NPROC, Value: l.Processes},
		{Name: "memory", Resource: unix.RLIMIT_DATA, Value: uint64(l.Memory)},
		{Name: "address_space", Resource: unix.RLIMIT_AS, Value: uint64(l.AddressSpace)},
	}
	return slices.DeleteFunc(all, func(limit launch.Limit) bool { return limit.Value == 0 && limit.Resource != unix.RLIMIT_CORE })
}
