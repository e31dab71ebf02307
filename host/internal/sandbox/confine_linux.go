package sandbox

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// selfPath is this program's file, even if another has taken its name since.
func selfPath() (string, error) { return "/proc/self/exe", nil }

// launcherAttr puts a launcher into a session of its own: it leads a process
// group to kill, and has no terminal that could send it SIGINT or that it
// could write input to.
func launcherAttr() *syscall.SysProcAttr {
	// The launcher sets the signal again; this covers the time until then.
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
}

// programFile names the program for execve(2): the descriptor, not the path.
func programFile(string) string { return "/proc/self/fd/" + strconv.Itoa(binaryFD) }

// confine applies everything but the limits to this process, which outlives
// execve(2), and says what is in force.
func (o *order) confine() (Report, error) {
	if err := closeDescriptors(o.Script); err != nil {
		return Report{}, err
	}
	unix.Umask(0o077)
	if err := unix.Chdir(string(o.Dir)); err != nil {
		return Report{}, fmt.Errorf("enter the working directory %s: %w", o.Dir, err)
	}
	// What the program starts stays below it even if it detaches itself, so
	// that Kill finds it.
	if err := prctl(unix.PR_SET_CHILD_SUBREAPER, 1); err != nil {
		return Report{}, fmt.Errorf("set subreaper: %w", err)
	}
	if err := prctl(unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return Report{}, fmt.Errorf("set no_new_privs: %w", err)
	}
	// After everything that changes credentials, which clears it.
	if err := prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL)); err != nil {
		return Report{}, fmt.Errorf("set pdeathsig: %w", err)
	}
	if os.Getppid() != o.Host {
		return Report{}, fmt.Errorf("the host (process %d) is gone", o.Host)
	}
	return o.report(), nil
}

func (o *order) report() Report {
	r := Report{
		Layers: []string{"rlimits", "no_new_privs", "pdeathsig", "subreaper", "session", "descriptors closed", "umask 077"},
		Missing: []string{"namespaces, landlock, seccomp (not in this version)"},
	}
	if o.Limits.Processes > 0 && os.Geteuid() == 0 {
		r.Missing = append(r.Missing, "rlimit of processes (root is exempt)")
	}
	return r
}

// closeDescriptors lets the program have standard input, output and error
// only, and its own text if it is a script, which the interpreter must open.
func closeDescriptors(script bool) error {
	if err := unix.CloseRange(binaryFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors (needs Linux 5.11): %w", err)
	}
	if !script {
		return nil
	}
	if _, err := unix.FcntlInt(binaryFD, unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("keep the script open: %w", err)
	}
	return nil
}

func prctl(option int, value uintptr) error {
	return unix.Prctl(option, value, 0, 0, 0)
}
