// Package launch is the program that becomes a plugin: the host executes itself
// anew, that process confines itself as it is ordered to, and then executes the
// plugin's program in its own place. The other side is package sandbox.
//
// It has to be there before the rest of the host has initialised itself, which
// takes several times as long as all that it does. Go initialises packages in the
// order of their import paths as soon as what they import is initialised, so a
// package that imports little is early. It must not import anything that is not.
package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
)

// Argument is the one argument of a process that is to be a launcher.
const Argument = "__launch"

// GuardArgument is the one argument of a process that is to guard the programs of a
// host: it kills them when its standard input ends.
const GuardArgument = "__guard"

// The launcher's descriptors after standard input, output and error. A script
// keeps the program's open, so that is the first.
const (
	ProgramFD = 3
	OrderFD   = 4
	NoticeFD  = 5
)

//nolint:gochecknoinits // what the package is for: to come before everything else
func init() {
	if len(os.Args) != 2 {
		return
	}
	switch os.Args[1] {
	case Argument:
		runtime.LockOSThread() // what is set for one thread must be set for the one that executes
		os.Exit(becomeProgram())
	case GuardArgument:
		os.Exit(guard(os.Stdin))
	}
}

// becomeProgram follows the host's order. It returns only if that fails, or if
// the order was to try only, with an exit status; the host has been told why.
func becomeProgram() int {
	orders := os.NewFile(OrderFD, "orders")
	notices := os.NewFile(NoticeFD, "notices")
	o, err := decodeOrder(orders)
	if err != nil {
		if sendErr := send(notices, Notice{Failure: describe(err)}); sendErr != nil {
			fmt.Fprintf(os.Stderr, "toolhost: %s is internal: only the host starts it\n", Argument)
		}
		return 2
	}
	_ = orders.Close() // it was only read
	err = o.execute(notices)
	if err == nil {
		return 0
	}
	if sendErr := send(notices, Notice{Failure: describe(err)}); sendErr != nil {
		return 2 // the host is gone
	}
	return 1
}

// execute applies the order to this process and then becomes the program. It
// returns nil if the order was to try only.
func (o *Order) execute(notices io.Writer) error {
	details, err := o.confine()
	if err != nil {
		return err
	}
	// The limits come last and everything is made before: a launcher without
	// memory, threads or descriptors could not even report.
	run := o.program()
	ok, err := encode(Notice{Done: details})
	if err != nil {
		return err
	}
	for _, limit := range o.Limits {
		if err := limit.apply(); err != nil {
			return err
		}
	}
	// This fails if the host is gone, and from here on its end is this one's.
	if _, err := notices.Write(ok); err != nil || o.Try {
		return err
	}
	return &execError{run()}
}

// apply sets the limit for this process.
func (l Limit) apply() error {
	// Package syscall and not unix: it remembers that the number of open files
	// was set, and does not put back the host's own at exec.
	err := syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: l.Value, Max: l.Value})
	if err == nil {
		return nil
	}
	var own syscall.Rlimit
	if syscall.Getrlimit(l.Resource, &own) == nil && own.Max < l.Value {
		return fmt.Errorf("set limit %s to %d: the host itself is limited to %d; configure no more than that, or raise the host's: %w",
			l.Name, l.Value, own.Max, err)
	}
	return fmt.Errorf("set limit %s to %d: %w", l.Name, l.Value, err)
}

// execError is the error of execve(2) itself.
type execError struct{ err error }

func (e *execError) Error() string { return e.err.Error() }
func (e *execError) Unwrap() error { return e.err }

// layerError says which layer could not be had here.
type layerError struct {
	layer string
	err   error
}

func (e *layerError) Error() string { return e.err.Error() }
func (e *layerError) Unwrap() error { return e.err }

// inLayer marks an error as one that says that a layer cannot be had here.
func inLayer(layer, doing string, err error) error {
	if err == nil {
		return nil
	}
	return &layerError{layer, fmt.Errorf("%s: %w", doing, err)}
}

// errMoved means that a path is not what it was when the order was written.
var errMoved = errors.New("it was replaced while the program was started")

// describe turns an error into what crosses to the host.
func describe(err error) *StepError {
	f := &StepError{Text: err.Error()}
	_, f.Exec = errors.AsType[*execError](err)
	f.Moved = errors.Is(err, errMoved)
	if l, ok := errors.AsType[*layerError](err); ok {
		f.Layer = l.layer
	}
	f.Errno, _ = errors.AsType[syscall.Errno](err)
	return f
}
