package process

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/sdk/tool"
)

func TestCause(t *testing.T) {
	limits := sandbox.Limits{
		Memory: 256 * tool.MiB, OpenFiles: 128, FileSize: 8 * tool.MiB, Processes: 64, CPUTime: 10 * time.Second,
	}
	memory := sandbox.Limits{Memory: 256 * tool.MiB}
	space := sandbox.Limits{Memory: 2 * tool.GiB, AddressSpace: tool.GiB}
	for _, tt := range []struct {
		name   string
		death  death
		limits sandbox.Limits
		want   string
	}{
		{"the host's verdict", death{Verdict: "stopped answering", Signal: syscall.SIGKILL}, limits, "stopped answering"},
		{"Go's heap", death{ExitCode: 2, Stderr: "fatal error: runtime: out of memory\n\nruntime stack:\n"}, limits, "exceeded its memory limit (256MiB)"},
		{"Go's arenas", death{ExitCode: 2, Stderr: "fatal error: out of memory allocating heap arena metadata\n"}, limits, "exceeded its memory limit (256MiB)"},
		{"Go's allocator", death{ExitCode: 2, Stderr: "runtime: cannot allocate memory\n"}, limits, "exceeded its memory limit (256MiB)"},
		{"Python", death{ExitCode: 1, Stderr: "Traceback (most recent call last):\n  x\nMemoryError\n"}, limits, "exceeded its memory limit (256MiB)"},
		{"C++", death{Signal: syscall.SIGABRT, Stderr: "terminate called after throwing an instance of 'std::bad_alloc'\n"}, limits, "exceeded its memory limit (256MiB)"},
		{"Rust", death{Signal: syscall.SIGABRT, Stderr: "memory allocation of 8192 bytes failed\n"}, limits, "exceeded its memory limit (256MiB)"},
		{"no memory, no limit", death{ExitCode: 2, Stderr: "fatal error: runtime: out of memory\n"}, sandbox.Limits{}, "ran out of memory"},
		{"address space", death{ExitCode: 2, Stderr: "fatal error: runtime: out of memory\n"}, space, "exceeded its address space limit (1GiB)"},
		{"Go's threads", death{ExitCode: 2, Stderr: "runtime: failed to create new OS thread (have 9 already; errno=11)\nruntime: may need to increase max user processes (ulimit -u)\nfatal error: newosproc\n"}, limits, "exceeded its limit of processes (64)"},
		{"no room for a thread's stack", death{ExitCode: 2, Stderr: "runtime/cgo: pthread_create failed: Resource temporarily unavailable\nSIGABRT: abort\n"}, memory, "exceeded its memory limit (256MiB)"},
		{"a fault of Go's runtime with its memory used up", death{ExitCode: 2, MaxRSS: 150 << 10, Stderr: "SIGSEGV: segmentation violation\nPC=0x1 m=3\n"}, memory, "exceeded its memory limit (256MiB)"},
		{"a fault with memory to spare", death{ExitCode: 2, MaxRSS: 50 << 10, Stderr: "SIGSEGV: segmentation violation\nPC=0x1 m=3\n"}, memory, "exited with code 2"},
		{"open files", death{ExitCode: 2, Stderr: "panic: open /x: too many open files\n\ngoroutine 1 [running]:\n"}, limits, "exceeded its limit of open files (128)"},
		{"open files at the end", death{ExitCode: 1, Stderr: "starting\naccept: too many open files\n"}, limits, "exceeded its limit of open files (128)"},
		{"open files before lines of a logger", death{ExitCode: 1, Stderr: "accept: too many open files\n{\"@level\":\"info\"}\n"}, limits, "exceeded its limit of open files (128)"},
		{"open files long before", death{ExitCode: 1, Stderr: "accept: too many open files\nretrying\nbye\n"}, limits, "exited with code 1"},
		{"file size, Go", death{ExitCode: 2, Stderr: "panic: write /x: file too large\n"}, limits, "exceeded its file size limit (8MiB)"},
		{"file size, others", death{Signal: syscall.SIGXFSZ}, limits, "exceeded its file size limit (8MiB)"},
		{"CPU, soft limit", death{Signal: syscall.SIGXCPU}, limits, "exceeded its CPU time limit (10s)"},
		{"CPU, hard limit", death{Signal: syscall.SIGKILL, CPU: 9999 * time.Millisecond}, limits, "exceeded its CPU time limit (10s)"},
		{"killed with little CPU", death{Signal: syscall.SIGKILL, CPU: time.Second}, limits, "was killed from outside, or by the system because memory ran out"},
		{"killed, CPU not limited", death{Signal: syscall.SIGKILL, CPU: time.Hour}, sandbox.Limits{}, "was killed from outside, or by the system because memory ran out"},
		{"the memory of the whole tree", death{Signal: syscall.SIGKILL, OutOfMemory: true}, limits, "exceeded its memory limit (256MiB) with all that it had started"},
		{"a child was killed for memory", death{ExitCode: 1, OutOfMemory: true}, limits, "exited with code 1"},
		{"system call", death{Signal: syscall.SIGSYS}, limits, "made a system call that is not allowed"},
		{"panic", death{ExitCode: 2, Stderr: "panic: boom\n"}, limits, "panicked"},
		{"panic in a log line", death{ExitCode: 1, Stderr: "log: panic: no\n"}, limits, "exited with code 1"},
		{"segmentation fault", death{Signal: syscall.SIGSEGV}, limits, "was ended by signal 11 (segmentation fault)"},
		{"exit", death{ExitCode: 3}, limits, "exited with code 3"},
		{"exit without a fault", death{}, limits, "exited with code 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.death.Limits = tt.limits
			if got := tt.death.cause(); got != tt.want {
				t.Errorf("cause() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDetail(t *testing.T) {
	d := death{ExitCode: 2, CPU: 1500 * time.Millisecond, MaxRSS: 40 << 10, Strays: 2, Stderr: "x\npanic: boom \x1b[31m\n\ngoroutine 1\n"}
	want := "exit code 2, CPU time 1.5s, at most 40 MiB resident, 2 processes left behind were killed: panic: boom [31m"
	if got := d.detail(); got != want {
		t.Errorf("detail() = %q, want %q", got, want)
	}
}

func TestCapture(t *testing.T) {
	line := strings.Repeat("a", 99) + "\n"
	lines := func(n int) string { return strings.Repeat(line, n) }
	for _, tt := range []struct {
		name       string
		writes     []string
		head, tail string // the beginning and end of the report
		size       int
	}{
		{"little", []string{"one\n", "two\n"}, "one\ntwo\n", "one\ntwo\n", 8},
		{"head and tail", append(strings.SplitAfter(lines(1000), "\n"), "end\n"), line, "a\nend\n", stderrHead + stderrTail},
		{"a crash after a long log", append(strings.SplitAfter(lines(1000), "\n"), "panic: boom\n", "goroutine 1\n"), "panic: boom\ngoroutine 1\n", "", 24},
		{"a long trace", append([]string{"panic: boom\n"}, strings.SplitAfter(lines(1000), "\n")...), "panic: boom\n" + line, line, stderrHead + stderrTail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c capture
			for _, w := range tt.writes {
				if n, err := c.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatalf("Write() = %d, %v, want %d", n, err, len(w))
				}
			}
			got := c.String()
			if !strings.HasPrefix(got, tt.head) || !strings.HasSuffix(strings.TrimSuffix(got, "\n")+"\n", tt.tail) && tt.tail != "" {
				t.Errorf("String() = %.60q ... %q", got, got[max(0, len(got)-60):])
			}
			if len(got) < tt.size || len(got) > tt.size+60 {
				t.Errorf("String() has %d bytes, want about %d", len(got), tt.size)
			}
		})
	}
}
