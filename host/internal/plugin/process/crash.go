package process

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/host/internal/plugin/sandbox"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/internal/lazyregexp"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Crash describes how a process of a plugin ended that should not have ended.
type Crash struct {
	// Time is when it ended.
	Time time.Time `json:"time"`
	// Cause completes "the plugin ...", e.g. "exceeded its memory limit
	// (256MiB)". It is safe to show to callers.
	Cause string `json:"cause"`
	// During is the phase of the start in which the process ended, e.g. "its
	// handshake"; "" if it had started.
	During string `json:"during,omitempty"`
	// Detail is for the operator: the exit status, the resources used, the last
	// line of standard error.
	Detail string `json:"detail"`
	// Stderr is the beginning and the end of its standard error.
	Stderr string `json:"stderr,omitempty"`
}

// Crash waits for the process to end and describes how it ended. during is the
// phase of the start in which it ended, or "".
func (p *Process) Crash(during string) *Crash {
	p.mu.Lock()
	verdict := p.verdict
	p.mu.Unlock()
	d := newDeath(p.running.Exit(), verdict, p.opts.Redact(p.stderr.String()), p.opts.Profile.Limits)
	return &Crash{Time: time.Now(), Cause: d.cause(), During: during, Detail: d.detail(), Stderr: d.Stderr}
}

// death holds the facts about the end of a process.
type death struct {
	// Verdict is why the host ended it; "" if the host did not end it.
	Verdict  string
	Signal   syscall.Signal // 0: it exited
	ExitCode int
	CPU      time.Duration
	MaxRSS   int64 // KiB
	// OutOfMemory is set if the whole process tree met the memory limit.
	OutOfMemory bool
	Strays      int
	Stderr      string
	Limits      sandbox.Limits
}

func newDeath(exit sandbox.Exit, verdict, stderr string, limits sandbox.Limits) death {
	d := death{Verdict: verdict, OutOfMemory: exit.OutOfMemory, Strays: exit.Strays, Stderr: stderr, Limits: limits}
	if exit.State == nil {
		return d
	}
	d.ExitCode = exit.State.ExitCode()
	d.CPU = exit.State.UserTime() + exit.State.SystemTime()
	if status, ok := exit.State.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		d.Signal = status.Signal()
	}
	if usage, ok := exit.State.SysUsage().(*syscall.Rusage); ok {
		d.MaxRSS = usage.Maxrss
	}
	return d
}

// Messages of language runtimes that a limit ends. Go's allocator has two of them;
// Go reports a thread that it cannot create as "newosproc".
var (
	outOfMemory    = lazyregexp.New(`(?m)^(fatal error: |runtime: )+(out of memory|cannot allocate memory)|^MemoryError|std::bad_alloc|memory allocation of \d+ bytes failed|JavaScript heap out of memory|Sanitizer failed to allocate`)
	noMoreThreads  = lazyregexp.New(`newosproc|failed to create new OS thread|can't start new thread|pthread_create failed`)
	noMoreFiles    = lazyregexp.New(`too many open files|EMFILE`)
	fileTooLarge   = lazyregexp.New(`file too large|File too large|EFBIG`)
	panicLine      = lazyregexp.New(`(?m)^(panic: |fatal error: |SIGSEGV: |SIGBUS: |unexpected fault address|\S*Error: ).*$`)
	goroutinePanic = lazyregexp.New(`(?m)^panic: `)
	runtimeFault   = lazyregexp.New(`(?m)^(SIGSEGV|SIGBUS|SIGABRT): `)
)

// cause completes "the plugin ...". It names the limit that ended the process, if
// there is one.
func (d death) cause() string {
	l, failed := d.Limits, d.Signal != 0 || d.ExitCode != 0
	switch {
	case d.Verdict != "":
		return d.Verdict
	case d.OutOfMemory && d.Signal == syscall.SIGKILL:
		return fmt.Sprintf("exceeded its memory limit (%v) with all that it had started", l.Memory)
	case d.Signal == syscall.SIGXCPU || d.Signal == syscall.SIGKILL && l.CPUTime > 0 && d.CPU >= l.CPUTime-100*time.Millisecond:
		return fmt.Sprintf("exceeded its CPU time limit (%v)", l.CPUTime)
	case d.Signal == syscall.SIGXFSZ:
		return fmt.Sprintf("exceeded its file size limit (%v)", l.FileSize)
	case d.Signal == syscall.SIGSYS:
		return "made a system call that is not allowed"
	case failed && noMoreThreads().MatchString(d.Stderr) && l.Processes > 0:
		return fmt.Sprintf("exceeded its limit of processes (%d)", l.Processes)
	case failed && (outOfMemory().MatchString(d.Stderr) || d.starved()):
		return d.memoryCause()
	case failed && l.OpenFiles > 0 && noMoreFiles().MatchString(d.lastWords()):
		return fmt.Sprintf("exceeded its limit of open files (%d)", l.OpenFiles)
	case failed && l.FileSize > 0 && fileTooLarge().MatchString(d.lastWords()):
		return fmt.Sprintf("exceeded its file size limit (%v)", l.FileSize)
	case goroutinePanic().MatchString(d.Stderr):
		return "panicked"
	case d.Signal == syscall.SIGKILL:
		return "was killed from outside, or by the system because memory ran out"
	case d.Signal != 0:
		return fmt.Sprintf("was ended by signal %d (%v)", int(d.Signal), d.Signal)
	}
	return fmt.Sprintf("exited with code %d", d.ExitCode)
}

// starved reports whether a runtime met the memory limit where it cannot report
// that: a thread without room for its stack, or Go's own structures (one in four
// of these deaths is a fault in the runtime).
func (d death) starved() bool {
	if d.Limits.Memory == 0 {
		return false
	}
	full := tool.ByteSize(d.MaxRSS)*tool.KiB > d.Limits.Memory/2
	return noMoreThreads().MatchString(d.Stderr) || full && runtimeFault().MatchString(d.Stderr)
}

// memoryCause names the memory limit that was met. If both are set it is the
// smaller one, which a process reaches first.
func (d death) memoryCause() string {
	memory, space := d.Limits.Memory, d.Limits.AddressSpace
	switch {
	case space > 0 && (memory == 0 || space <= memory):
		return fmt.Sprintf("exceeded its address space limit (%v)", space)
	case memory > 0:
		return fmt.Sprintf("exceeded its memory limit (%v)", memory)
	}
	return "ran out of memory"
}

// lastWords returns the line that explains why a program gave up. Only this line
// is searched for common errors: earlier log lines may mention them too.
func (d death) lastWords() string {
	if line := panicLine().FindString(d.Stderr); line != "" {
		return line
	}
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(d.Stderr), "\n")) {
		if !strings.HasPrefix(line, `{"@`) { // the logger's
			return line
		}
	}
	return ""
}

// detail returns the facts for the operator.
func (d death) detail() string {
	how := fmt.Sprintf("exit code %d", d.ExitCode)
	if d.Signal != 0 {
		how = fmt.Sprintf("signal %d (%v)", int(d.Signal), d.Signal)
	}
	text := fmt.Sprintf("%s, CPU time %v, at most %d MiB resident", how, d.CPU.Round(time.Millisecond), d.MaxRSS>>10)
	if d.Strays > 0 {
		text += fmt.Sprintf(", %d processes left behind were killed", d.Strays)
	}
	if line := d.lastWords(); line != "" {
		text += ": " + cleanLine(excerpt.Head(line, maxShort))
	}
	return text
}

// Bounds of the standard error in a crash report, in bytes. A Go traceback states
// the reason at its beginning, other programs at their end.
const (
	stderrHead = 8 << 10
	stderrTail = 16 << 10
)

// capture keeps the beginning and the end of everything that is written to it.
// The zero value is ready.
type capture struct {
	mu      sync.Mutex // guards all below
	head    []byte
	tail    []byte
	dropped int // bytes between head and tail
}

// Write adds a line, or a part of a longer line. It never fails.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	// Start again where a program reports why it dies. The lines before are in the
	// host's log.
	if len(c.tail) > 0 && beginsCrash(p) {
		c.dropped += len(c.head) + len(c.tail)
		c.head, c.tail = nil, nil
	}
	room := min(stderrHead-len(c.head), len(p))
	c.head = append(c.head, p[:room]...)
	c.tail = append(c.tail, p[room:]...)
	if over := len(c.tail) - stderrTail; over > 0 {
		c.dropped += over
		c.tail = append(c.tail[:0], c.tail[over:]...)
	}
	return n, nil
}

// String returns the head, a line with the number of bytes left out, and the tail.
func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped == 0 {
		return string(c.head) + string(c.tail)
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", c.head, c.dropped, c.tail)
}

// beginsCrash reports whether a line is the first of a report of a crash.
func beginsCrash(line []byte) bool {
	for _, mark := range []string{"panic: ", "fatal error: ", "runtime: out of memory", "SIGQUIT: quit", "Traceback (most recent"} {
		if bytes.HasPrefix(line, []byte(mark)) {
			return true
		}
	}
	return false
}
