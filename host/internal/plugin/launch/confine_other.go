//go:build !linux

package launch

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// confine applies the confinement that this system has besides the limits.
func (o *Order) confine() (*Details, error) {
	for _, fd := range []int{ProgramFD, OrderFD, NoticeFD} {
		unix.CloseOnExec(fd)
	}
	unix.Umask(0o077)
	if err := unix.Chdir(string(o.Dir)); err != nil {
		return nil, fmt.Errorf("enter the working directory %s: %w", o.Dir, err)
	}
	return &Details{}, nil
}

func (o *Order) program() func() error {
	argv, env := append([]string{string(o.Path)}, stringsOf(o.Args)...), stringsOf(o.Env)
	return func() error { return syscall.Exec(argv[0], argv, env) }
}
