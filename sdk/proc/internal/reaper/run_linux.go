package reaper

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/internal/landlock"
)

// Every initialiser runs on the first thread (runtime.LockOSThread), and so does
// all of the reaper but obey. The kernel gives orphans to the first thread and
// takes the end of the thread that started a command for its parent's death.
func init() { //nolint:gochecknoinits // it must run before the plugin's own code
	if !entered() {
		return
	}
	// The race detector, for one, would make os.Exit late.
	unix.Exit(run())
}

// entered says whether a plugin started this process as a reaper: it has no
// argument, its name, a socket and a pipe.
func entered() bool {
	return len(os.Args) == 1 && os.Args[0] == Name && is(unix.S_IFSOCK, ControlFD) && is(unix.S_IFIFO, ReportFD)
}

func is(kind uint32, fd int) bool {
	var stat unix.Stat_t
	return unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == kind
}

// descriptor reads from a descriptor, without the work of an os.File.
type descriptor int

func (d descriptor) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0:
			return 0, errEnd
		default:
			return n, nil
		}
	}
}

var errEnd = errors.New("the plugin is gone")

// send sends a report to the plugin. If the plugin is gone, the error does not matter.
func send(r Report) { _, _ = unix.Write(ReportFD, []byte(r.String())) }

// run does all that a reaper does and returns its exit status. It runs one command after
// another, until the plugin is gone or has another reaper.
func run() int {
	self, failure := prepare() // while no one waits
	for {
		order, files, err := receive()
		if err != nil {
			return 2
		}
		if self.plugin < 0 {
			self.plugin = openPlugin(order.Parent)
		}
		if os.Getppid() != order.Parent {
			return 2 // the plugin is gone
		}
		t := &tree{own: self}
		var started *Started
		if failure == nil {
			started, failure = t.start(order, files)
		}
		if failure != nil {
			send(Report{Failed: failure})
			return 1
		}
		ended := t.serve(files, started)
		ended.Again = ended.Strays == 0 && self.restore()
		send(Report{Ended: ended})
		if !ended.Again {
			_ = unix.Close(ReportFD) // the plugin need not wait until the system has cleared this process away
			return 0
		}
	}
}

// serve attends to the command from its start to its end.
func (t *tree) serve(files []int, started *Started) *Ended {
	send(Report{Started: started})
	// A command that closes one of its files is its only owner.
	for _, fd := range files {
		_ = unix.Close(fd)
	}
	obeyed := make(chan struct{})
	go func() { // ends with the command
		defer close(obeyed)
		t.obey()
	}()
	send(Report{Exited: &Exited{Status: t.await()}})
	strays := t.wait() + t.sweep()
	t.own.free(obeyed)
	return &Ended{Strays: strays, Dir: where(), CPUTime: t.cpuTime, MaxRSS: t.maxRSS}
}

// where returns the working directory, which is the command's; "" if it no longer exists or is
// not visible from here.
func where() string {
	dir, err := unix.Getwd()
	if err != nil || !strings.HasPrefix(dir, "/") {
		return ""
	}
	return dir
}

// openPlugin returns a descriptor that becomes readable when the plugin ends; -1 if the kernel
// does not support it. The end of the control pipe means the same, unless another process holds
// the pipe.
func openPlugin(pid int) int {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1
	}
	return fd
}

// self is what a reaper has and is, whatever its command.
type self struct {
	list   int // /proc/self/task/PID/children
	plugin int // see openPlugin
	over   int // readable when the command is over
	umask  int
	root   unix.Stat_t
}

// prepare does the work that is the same for every command.
func prepare() (*self, *Failure) {
	s := &self{list: -1, plugin: -1, over: -1}
	// A descriptor that the plugin's C code has left open is not the command's.
	if err := unix.CloseRange(ControlFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return s, failed(StepReaper, "close descriptors (needs Linux 5.11)", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return s, failed(StepReaper, "set subreaper", err)
	}
	var err error
	if s.list, err = unix.Open(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return s, failed(StepReaper, "list child processes (needs /proc and a kernel with CONFIG_PROC_CHILDREN)", err)
	}
	if s.over, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return s, failed(StepReaper, "make an eventfd", err)
	}
	if err := unix.Stat("/", &s.root); err != nil {
		return s, failed(StepReaper, "find the root directory", err)
	}
	s.umask = unix.Umask(0)
	unix.Umask(s.umask)
	return s, nil
}

// free ends the goroutine that obeys the plugin, after which the control socket carries the
// next order.
func (s *self) free(obeyed <-chan struct{}) {
	var count [8]byte
	count[0] = 1 // in the order of a little-endian machine; any number but the highest does
	_, _ = unix.Write(s.over, count[:])
	<-obeyed
	_, _ = unix.Read(s.over, count[:]) // is no longer readable
}

// restore undoes what a command can do to its reaper, with which it shares the working
// directory, the root directory and the umask. It reports whether that has succeeded. The next
// order names a working directory.
func (s *self) restore() bool {
	unix.Umask(s.umask)
	var root unix.Stat_t
	return unix.Stat("/", &root) == nil && root.Dev == s.root.Dev && root.Ino == s.root.Ino
}

// start starts the command.
func (t *tree) start(o *Order, files []int) (*Started, *Failure) {
	if err := unix.Chdir(o.Dir); err != nil {
		return nil, failed(StepDir, "", err)
	}
	ruleset, err := o.ruleset()
	if err != nil {
		return nil, failed(StepRules, err.Error(), nil)
	}
	pid, failure := fork(o, files, ruleset)
	if ruleset >= 0 {
		_ = unix.Close(ruleset) // nothing is buffered
	}
	if failure != nil {
		return nil, failure
	}
	t.command = pid
	return &Started{Restricted: ruleset >= 0}, nil
}

func failed(step Step, text string, err error) *Failure {
	f := &Failure{Step: step, Text: text}
	f.Errno, _ = errors.AsType[syscall.Errno](err)
	return f
}

// ruleset makes the ruleset of the order's rules; -1 if the order has none.
func (o *Order) ruleset() (int, error) {
	if o.Rules == nil {
		return -1, nil
	}
	if _, err := landlock.ABI(); err != nil {
		if o.RulesOptional {
			return -1, nil
		}
		return -1, err
	}
	rules, err := landlock.New(landlock.Rules{
		Read: o.Rules.Read, Execute: o.Rules.Execute, Write: o.Rules.Write, Devices: o.Rules.Devices, Scoped: true,
	})
	if err != nil {
		return -1, err
	}
	return rules.FD(), nil
}

// tree is the command and all that it starts.
type tree struct {
	own     *self
	command int

	cpuTime time.Duration // of all that was reaped
	maxRSS  int64         // KiB

	mu    sync.Mutex // guards everything below, and is held to reap what killAll may kill
	over  bool       // the command's process id may be another's from here on
	spare bool       // the processes that the command leaves are not killed,
	kill  bool       // until everything is
}

// obey passes on signals, and kills the command when the plugin asks for it or is gone. The
// remaining processes are then killed as at any other end of the command. It returns at the
// latest when the command is over.
func (t *tree) obey() {
	fds := []unix.PollFd{{Fd: ControlFD, Events: unix.POLLIN}, {Fd: int32(t.own.plugin), Events: unix.POLLIN}, {Fd: int32(t.own.over), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if fds[2].Revents != 0 {
			return
		}
		if fds[1].Revents != 0 {
			t.killAll()
			return
		}
		var sig [1]byte
		if _, err := descriptor(ControlFD).Read(sig[:]); err != nil {
			t.killAll()
			return
		}
		t.signal(syscall.Signal(sig[0]))
	}
}

// signal signals the command and its process group, or notes that the processes that it leaves
// are spared.
func (t *tree) signal(sig syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
	case sig == Spare:
		t.spare = true
	default:
		_ = unix.Kill(-t.command, sig) // it fails for processes that have ended
	}
}

// killAll kills the command with its process group, or the processes that it left. After that,
// wait returns.
func (t *tree) killAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kill = true
	switch {
	case !t.over:
		// They fail for processes that have ended.
		_ = unix.Kill(-t.command, unix.SIGKILL)
		_ = unix.Kill(t.command, unix.SIGKILL) // it may have left the group
	case t.spare:
		t.killChildren() // which wait reaps
	}
}

// await reaps orphans until the command ends, and then kills its group, unless
// that is spared, and takes its exit status.
func (t *tree) await() syscall.WaitStatus {
	for {
		pid, err := nextEnded()
		if err == nil && pid == t.command {
			break
		}
		if err == nil {
			_, _ = t.wait4(pid, nil, unix.WNOHANG) // it has ended
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if !t.spare || t.kill {
		// Kills the rest of the group at once. The group is the command's while its zombie holds
		// the number.
		_ = unix.Kill(-t.command, unix.SIGKILL)
	}
	var status unix.WaitStatus
	for {
		if _, err := t.wait4(t.command, &status, 0); !errors.Is(err, unix.EINTR) {
			return syscall.WaitStatus(status)
		}
	}
}

// wait reaps spared processes, until none is left or all must be killed, and returns how many
// died of SIGKILL.
func (t *tree) wait() (killed int) {
	for t.waits() {
		pid, err := nextEnded()
		if errors.Is(err, unix.ECHILD) {
			return killed
		}
		if err == nil {
			killed += t.reap(pid)
		}
	}
	return killed
}

func (t *tree) waits() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spare && !t.kill
}

// reap gives back the number of a child that has ended. It returns 1 if SIGKILL
// has ended it.
func (t *tree) reap(pid int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	var status unix.WaitStatus
	_, err := t.wait4(pid, &status, unix.WNOHANG)
	if err == nil && status.Signaled() && status.Signal() == unix.SIGKILL {
		return 1
	}
	return 0
}

// wait4 reaps a child, and adds what it and its descendants have used.
func (t *tree) wait4(pid int, status *unix.WaitStatus, options int) (int, error) {
	var used unix.Rusage
	pid, err := unix.Wait4(pid, status, options|unix.WALL, &used)
	if err == nil && pid > 0 {
		t.cpuTime += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		t.maxRSS = max(t.maxRSS, int64(used.Maxrss)) //nolint:unconvert // it has 32 bits elsewhere
	}
	return pid, err
}

// killChildren kills the children and reports whether there are any. No child may be reaped
// during that time.
func (t *tree) killChildren() bool {
	children := t.children()
	for _, pid := range children {
		// If a group has this number, the child has created it.
		_ = unix.Kill(-pid, unix.SIGKILL)
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return len(children) > 0
}

// sweep kills and reaps children until none is left and returns how many died of SIGKILL.
// Their own children then become children of the reaper. Only the reaper reaps them, so their
// process ids are not reused.
func (t *tree) sweep() (killed int) {
	for {
		// The list may have missed some. The kernel knows whether one is left.
		options := 0
		if !t.killChildren() {
			options |= unix.WNOHANG
		}
		for {
			var status unix.WaitStatus
			pid, err := t.wait4(-1, &status, options)
			if errors.Is(err, unix.ECHILD) {
				return killed
			}
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if pid <= 0 {
				break
			}
			if status.Signaled() && status.Signal() == unix.SIGKILL {
				killed++
			}
			options |= unix.WNOHANG
		}
	}
}

// children lists the children of the first thread, which has all of them.
func (t *tree) children() []int {
	var buffer [4096]byte // the cut-off rest follows in the next round
	n, err := unix.Pread(t.own.list, buffer[:], 0)
	if err != nil || n <= 0 {
		return nil
	}
	var found []int
	text := string(buffer[:n])
	for {
		field, rest, complete := strings.Cut(text, " ")
		if !complete {
			return found
		}
		if pid := number(field); pid > 1 {
			found = append(found, pid)
		}
		text = rest
	}
}

func number(digits string) int {
	n := 0
	for _, d := range []byte(digits) {
		if d < '0' || d > '9' {
			return 0
		}
		n = 10*n + int(d-'0')
	}
	return n
}
