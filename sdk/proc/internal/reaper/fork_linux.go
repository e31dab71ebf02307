package reaper

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// child holds everything that the forked process needs. It is prepared before the fork: the
// child of a program with several threads must not allocate.
type child struct {
	path     *byte
	argv     []*byte
	env      []*byte
	limits   []childLimit
	ruleset  int // -1: none
	terminal bool
	files    []int // what becomes descriptors 0, 1 and so on
	reaper   int   // the parent's process id

	everySignal, noSignal, oldSignals uint64
	defaultAction                     [4]uint64 // struct sigaction of the kernel: SIG_DFL
	report                            int
	failure                           childFailure
}

type childLimit struct {
	resource uintptr
	value    unix.Rlimit
}

// childFailure is the report of a child that could not execute the program.
type childFailure struct {
	step, index, errno uint64
}

const signals = 64

// childSteps name the steps of a child.
var childSteps = [...]Step{StepTerminal, StepLimit, StepRules, StepExecutable, StepFiles}

const (
	stepTerminal = iota
	stepLimit
	stepRules
	stepExecute
	stepFiles
)

// fork starts the command as the leader of its own session, under its limits and rules. The
// command shares the reaper's working directory, so that the reaper knows where the command
// ends, whatever the command does to its descriptors. Processes of the command have their own.
// Package syscall cannot set these in the child alone, and another process that does so before
// it becomes the command would take as long to start as the reaper itself.
func fork(o *Order, files []int, ruleset int) (pid int, failure *Failure) {
	c, err := newChild(o, files, ruleset)
	if err != nil {
		return 0, failed(StepFork, err.Error(), err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, failed(StepFork, "make a pipe", err)
	}
	defer func() { _ = unix.Close(pipe[0]) }() // nothing is buffered
	c.report = pipe[1]
	id, errno := c.fork()
	_ = unix.Close(pipe[1]) // nothing is buffered
	if errno != 0 {
		return 0, failed(StepFork, "start a process", errno)
	}
	// The pipe ends when the program is executed.
	told := (*[unsafe.Sizeof(c.failure)]byte)(unsafe.Pointer(&c.failure)) //nolint:gosec // the child writes the same
	if n := readAtOnce(pipe[0], told[:]); n != len(told) {
		return int(id), nil
	}
	_, _ = unix.Wait4(int(id), nil, 0, nil) // it has ended
	return 0, &Failure{Step: childSteps[c.failure.step], Index: int(c.failure.index), Errno: syscall.Errno(c.failure.errno)}
}

// readAtOnce reads data that arrives within a moment. Go's scheduler does not know: it would
// take the one processor away, and wake a thread to give it back.
func readAtOnce(fd int, b []byte) int {
	for {
		n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))) //nolint:gosec // as the call takes it
		if errno == 0 {
			return int(n)
		}
		if !errors.Is(errno, unix.EINTR) {
			return 0
		}
	}
}

func newChild(o *Order, files []int, ruleset int) (*child, error) {
	c := &child{ruleset: ruleset, terminal: o.Terminal, files: files, reaper: os.Getpid(), everySignal: ^uint64(0)}
	var errs [3]error
	c.path, errs[0] = syscall.BytePtrFromString(o.Path)
	c.argv, errs[1] = syscall.SlicePtrFromStrings(o.Args)
	c.env, errs[2] = syscall.SlicePtrFromStrings(o.Env)
	for _, l := range o.Limits {
		c.limits = append(c.limits, childLimit{uintptr(l.Resource), unix.Rlimit{Cur: l.Soft, Max: l.Hard}})
	}
	return c, errors.Join(errs[:]...)
}

// fork returns in the parent only. After the fork it makes raw system calls and nothing else: a
// function that grows the stack, allocates, or is watched by the race detector might wait for a
// lock of a thread that the child does not have.
//
//go:norace
//go:noinline
func (c *child) fork() (pid uintptr, errno syscall.Errno) {
	var index int
	// No signal handler of Go must run in the child.
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&c.everySignal)), uintptr(unsafe.Pointer(&c.oldSignals)), signals/8, 0, 0) //nolint:gosec // as the call takes it
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD|unix.CLONE_FS), 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
			uintptr(unsafe.Pointer(&c.oldSignals)), 0, signals/8, 0, 0) //nolint:gosec // as the call takes it
		return pid, errno
	}

	// It fails only for the leader of a group, which a new process is not.
	_, _, _ = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	// In this order none is overwritten before it has been copied.
	c.failure.step = stepFiles
	for index = range c.files {
		if _, _, errno = syscall.RawSyscall(unix.SYS_DUP3, uintptr(c.files[index]), uintptr(index), 0); errno != 0 {
			goto fail
		}
	}
	if c.terminal {
		if _, _, errno = syscall.RawSyscall(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 1); errno != 0 {
			c.failure.step = stepTerminal
			goto fail
		}
	}
	// If the reaper is killed, the kernel kills the command as well. It cannot fail.
	_, _, _ = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	if pid, _, _ = syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); pid != uintptr(c.reaper) {
		goto exit
	}
	if c.ruleset >= 0 {
		c.failure.step = stepRules
		if _, _, errno = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
			goto fail
		}
		if _, _, errno = syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(c.ruleset), 0, 0); errno != 0 {
			goto fail
		}
	}
	c.failure.step = stepLimit
	for index = range c.limits {
		c.failure.index = uint64(index)
		if _, _, errno = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, c.limits[index].resource,
			uintptr(unsafe.Pointer(&c.limits[index].value)), 0, 0, 0); errno != 0 { //nolint:gosec // as the call takes it
			goto fail
		}
	}
	// The program starts with no signal ignored or blocked, unlike perhaps the plugin. Changes
	// of SIGKILL and SIGSTOP fail, as they should.
	for index = 1; index <= signals; index++ {
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(index),
			uintptr(unsafe.Pointer(&c.defaultAction)), 0, signals/8, 0, 0) //nolint:gosec // as the call takes it
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&c.noSignal)), 0, signals/8, 0, 0) //nolint:gosec // as the call takes it
	c.failure.step = stepExecute
	_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE,
		uintptr(unsafe.Pointer(c.path)), uintptr(unsafe.Pointer(&c.argv[0])), uintptr(unsafe.Pointer(&c.env[0]))) //nolint:gosec // as the call takes it

fail:
	c.failure.errno = uint64(errno)
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, uintptr(c.report),
		uintptr(unsafe.Pointer(&c.failure)), unsafe.Sizeof(c.failure)) //nolint:gosec // as the call takes it
exit:
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
	}
}
