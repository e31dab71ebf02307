//go:build !linux

package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func selfPath() (string, error) { return os.Executable() }

func launcherAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

func programFile(path string) string { return path }

// confine applies what this system has besides the limits.
func (o *order) confine() (Report, error) {
	for _, fd := range []int{binaryFD, orderFD, reportFD} {
		unix.CloseOnExec(fd)
	}
	unix.Umask(0o077)
	if err := unix.Chdir(string(o.Dir)); err != nil {
		return Report{}, fmt.Errorf("enter the working directory %s: %w", o.Dir, err)
	}
	on := ": " + runtime.GOOS + " has none"
	return Report{
		Layers: []string{"rlimits", "session", "umask 077"},
		Missing: []string{
			"no_new_privs" + on, "pdeathsig" + on, "subreaper" + on, "namespaces" + on,
			"execution by descriptor" + on,
		},
	}, nil
}
