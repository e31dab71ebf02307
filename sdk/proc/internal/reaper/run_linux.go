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

// All initializers run on the first thread (runtime.LockOSThread), and so does the reaper,
// except obey. The kernel gives orphans to the first thread, and it treats the end of the
// thread that started a command as the death of the command's parent.
func init() { //nolint:gochecknoinits // it must run before the plugin's own code
	if !entered() {
		return
	}
	// os.Exit would be slow with the race detector.
	unix.Exit(run())
}

// entered reports whether a plugin started this process as a reaper: it has the
// reaper's name, no arguments, a socket and a pipe.
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

// run is the whole reaper. It runs one command after another until the plugin ends or uses
// another reaper, and returns the exit status.
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

// serve watches the command from start to end.
func (t *tree) serve(files []int, started *Started) *Ended {
	send(Report{Started: started})
	// The command must be the only owner of its files, so that closing one has an effect.
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

// where returns the working directory, which the command shares. It returns "" if the
// directory no longer exists or is not visible from here.
func where() string {
	dir, err := unix.Getwd()
	if err != nil || !strings.HasPrefix(dir, "/") {
		return ""
	}
	return dir
}

// openPlugin returns a descriptor that becomes readable when the plugin ends, or -1 if the
// kernel does not support such descriptors. The end of the control pipe says the same, unless
// another process holds the pipe.
func openPlugin(pid int) int {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1
	}
	return fd
}

// self is the state of a reaper that does not depend on its command.
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
	// The command must not inherit descriptors that the plugin's C code left open.
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

// free ends the goroutine that obeys the plugin. Then the control socket can carry the next
// order.
func (s *self) free(obeyed <-chan struct{}) {
	var count [8]byte
	count[0] = 1 // in the order of a little-endian machine; any number but the highest does
	_, _ = unix.Write(s.over, count[:])
	<-obeyed
	_, _ = unix.Read(s.over, count[:]) // is no longer readable
}

// restore undoes what a command can do to its reaper: they share the umask, the root directory
// and the working directory. It reports whether it succeeded. The next order names a working
// directory of its own; until then, the reaper keeps none in use.
func (s *self) restore() bool {
	unix.Umask(s.umask)
	var root unix.Stat_t
	return unix.Chdir("/") == nil && unix.Stat("/", &root) == nil && root.Dev == s.root.Dev && root.Ino == s.root.Ino
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

// ruleset makes the ruleset of the order's rules. It returns -1 if the order has none.
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

// tree is the command and everything it starts.
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

// obey passes signals on, and kills the command when the plugin asks for it or ends. The
// reaper then kills the remaining processes as after any other command. obey returns when the
// command is over, or earlier.
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

// signal signals the command and its process group, or notes to spare the processes that the
// command leaves behind.
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

// killAll kills the command and its process group, or the processes that the command left
// behind. Then wait returns.
func (t *tree) killAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kill = true
	switch {
	case !t.over:
		// Fails for processes that have ended.
		_ = unix.Kill(-t.command, unix.SIGKILL)
		_ = unix.Kill(t.command, unix.SIGKILL) // it may have left the group
	case t.spare:
		t.killChildren() // which wait reaps
	}
}

// await reaps orphans until the command ends. Then it kills the command's group, unless the
// group is spared, and returns the command's status.
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
		// Kills the rest of the group at once. The number belongs to the command's group as long
		// as the command is a zombie.
		_ = unix.Kill(-t.command, unix.SIGKILL)
	}
	var status unix.WaitStatus
	for {
		if _, err := t.wait4(t.command, &status, 0); !errors.Is(err, unix.EINTR) {
			return syscall.WaitStatus(status)
		}
	}
}

// wait reaps spared processes until none is left or all must be killed. It returns how many
// SIGKILL ended.
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

// reap reaps a child that has ended. It returns 1 if SIGKILL ended the child.
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

// wait4 reaps a child and adds up what the child and its descendants used.
func (t *tree) wait4(pid int, status *unix.WaitStatus, options int) (int, error) {
	var used unix.Rusage
	pid, err := unix.Wait4(pid, status, options|unix.WALL, &used)
	if err == nil && pid > 0 {
		t.cpuTime += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		t.maxRSS = max(t.maxRSS, int64(used.Maxrss)) //nolint:unconvert // it has 32 bits elsewhere
	}
	return pid, err
}

// killChildren kills the children and reports whether there are any. The caller must not reap
// children meanwhile.
func (t *tree) killChildren() bool {
	children := t.children()
	for _, pid := range children {
		// If a group has this number, the child created it.
		_ = unix.Kill(-pid, unix.SIGKILL)
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return len(children) > 0
}

// sweep kills and reaps children until none is left, and returns how many SIGKILL ended.
// Their children become the reaper's children. Only the reaper reaps them, so no process id is
// reused.
func (t *tree) sweep() (killed int) {
	for {
		// The list may miss some children. The kernel knows whether any is left.
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

// children lists the children of the first thread. It has all of them.
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
