// Package launch is the launcher of plugins, and the reaper that kills them. The host
// executes itself again as a launcher, which confines itself by an order and then
// executes the program of the plugin. Package sandbox is the other side.
//
// The launcher must run before the rest of the host is initialized, which takes
// several times as long as the launch. Go initializes packages in the order of their
// import paths, each as soon as its imports are initialized, so a package with few
// imports is early. This package must import only such packages.
package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
)

// Argument is the only argument of a launcher.
const Argument = "__launch"

// ReaperArgument is the only argument of a reaper, which kills the programs of a host
// when its standard input ends.
const ReaperArgument = "__reaper"

// The launcher's descriptors after standard input, output and error. ProgramFD is the
// first because it stays open for a script.
const (
	ProgramFD = 3
	OrderFD   = 4
	NoticeFD  = 5
	ProxyFD   = 6 // a unix socket; only with Order.Proxy
)

//nolint:gochecknoinits // the package must run before everything else
func init() {
	if len(os.Args) != 2 {
		return
	}
	switch os.Args[1] {
	case Argument:
		runtime.LockOSThread() // the settings of a thread must be those of the thread that executes the program
		os.Exit(becomeProgram())
	case ReaperArgument:
		os.Exit(reap(os.Stdin))
	}
}

// becomeProgram executes the host's order. It returns an exit status if that fails, after
// it has sent the reason to the host, or if the order was only to try.
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

// execute applies the order to this process and then becomes the program. It returns
// nil if the order was only to try.
func (o *Order) execute(notices io.Writer) error {
	details, err := o.confine()
	if err != nil {
		return err
	}
	// The limits come last: a launcher without memory, threads or descriptors could not
	// report a failure.
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
	// This fails if the host is gone. From now on this process ends with the host.
	if _, err := notices.Write(ok); err != nil || o.Try {
		return err
	}
	return &execError{run()}
}

// apply sets the limit for this process.
func (l Limit) apply() error {
	// Package syscall, not unix: it notes that the limit of open files was set, and
	// does not restore the host's own limit at exec.
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

// layerError names a layer that is not available on this machine.
type layerError struct {
	layer string
	err   error
}

func (e *layerError) Error() string { return e.err.Error() }
func (e *layerError) Unwrap() error { return e.err }

// inLayer marks an error as the reason why a layer is not available.
func inLayer(layer, doing string, err error) error {
	if err == nil {
		return nil
	}
	return &layerError{layer, fmt.Errorf("%s: %w", doing, err)}
}

// errMoved reports that a path was replaced after the order was written.
var errMoved = errors.New("it was replaced while the program was started")

// describe converts an error for the host.
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
