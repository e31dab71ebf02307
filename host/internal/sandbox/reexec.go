package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
)

// launcherArg is the one argument of a process that is to be a launcher.
const launcherArg = "__launch"

func isLauncher() bool {
	return len(os.Args) == 2 && os.Args[1] == launcherArg
}

// Reexec turns this process into a launcher if a [Launcher] started it as one,
// and does not return then. In any other process it does nothing. It must be
// the first statement of main, and of TestMain in tests that start programs.
func Reexec() {
	if !isLauncher() {
		return
	}
	runtime.LockOSThread() // what is set for one thread must be set for the one that executes
	os.Exit(becomeProgram())
}

// becomeProgram follows the host's order. It returns only if that fails, with
// an exit status; the host has been told why.
func becomeProgram() int {
	orders := os.NewFile(orderFD, "orders")
	notices := os.NewFile(reportFD, "notices")
	o, err := decodeOrder(orders)
	if err != nil {
		if sendErr := send(notices, notice{Failure: describe(err)}); sendErr != nil {
			fmt.Fprintf(os.Stderr, "toolhost: %s is internal: only the host starts it\n", launcherArg)
		}
		return 2
	}
	closeAll(orders)
	err = o.execute(notices)
	if sendErr := send(notices, notice{Failure: describe(err)}); sendErr != nil {
		return 2 // the host is gone
	}
	return 1
}

// execute applies the order to this process and then becomes the program. It
// returns only if that fails.
func (o *order) execute(notices io.Writer) error {
	report, err := o.confine()
	if err != nil {
		return err
	}
	// The limits come last and everything is made before: a launcher without
	// memory, threads or descriptors could not even report.
	program := newProgram(o)
	ok, err := encode(notice{Report: &report})
	if err != nil {
		return err
	}
	for _, limit := range o.Limits.resources() {
		if err := limit.apply(); err != nil {
			return err
		}
	}
	if _, err := notices.Write(ok); err != nil {
		return err
	}
	return &execError{program.exec()}
}

// program is what execve(2) takes.
type program struct {
	file      string
	argv, env []string
}

func newProgram(o *order) program {
	return program{
		file: programFile(string(o.Path)),
		argv: append([]string{string(o.Path)}, stringsOf(o.Args)...),
		env:  stringsOf(o.Env),
	}
}

func (p program) exec() error { return syscall.Exec(p.file, p.argv, p.env) }

// execError is the error of execve(2) itself.
type execError struct{ err error }

func (e *execError) Error() string { return e.err.Error() }
func (e *execError) Unwrap() error { return e.err }

// describe turns an error into what crosses to the host.
func describe(err error) *failure {
	f := &failure{Text: err.Error()}
	_, f.Exec = errors.AsType[*execError](err)
	f.Errno, _ = errors.AsType[syscall.Errno](err)
	return f
}
