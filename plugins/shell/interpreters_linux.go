package main

import (
	"context"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/plugins/shell/internal/interpreter"
	"github.com/toolhost/toolhost/sdk/proc"
)

// self is this program, for whatever the plugin executes.
const self = "/proc/self/exe"

// interpreters start the process for each command that is executed by its tree, and keep
// one more, for the next: it takes longer to start than most commands to run. There is none
// before the first such command.
type interpreters struct {
	preparing sync.WaitGroup

	mu     sync.Mutex // guards the rest, and is held while the next one is started
	next   *waiting   // nil if there is none
	closed bool
}

// waiting is an interpreter that has no command yet. It has its limits and rules.
type waiting struct {
	program *proc.Standby
	socket  *os.File
}

// start starts an interpreter with a command. What it returns of the program is to be
// written to the socket.
func (i *interpreters) start(ctx context.Context, c proc.Command, p interpreter.Program) (process *proc.Process, socket *os.File, rest []byte, err error) {
	c = interpreting(c)
	w := i.take(c)
	if w != nil {
		process, rest, err = w.start(ctx, c, p)
	}
	if w == nil || err != nil && ctx.Err() == nil { // something may have ended the one that waited
		if w, err = newWaiting(c); err != nil {
			return nil, nil, nil, err
		}
		if process, rest, err = w.start(ctx, c, p); err != nil {
			return nil, nil, nil, err
		}
	}
	if err != nil {
		return nil, nil, nil, err
	}
	return process, w.socket, rest, nil
}

// interpreting is the command of an interpreter.
func interpreting(c proc.Command) proc.Command {
	c.Path, c.Args, c.Env = self, []string{interpreter.Argument}, []string{} // nothing of the command's changes the interpreter
	if c.Rules != nil {
		rules := *c.Rules
		rules.Execute = append(slices.Clone(rules.Execute), self)
		c.Rules = &rules
	}
	return c
}

// mayWait reports whether an interpreter may be started before its command. Rules stand
// for the files that are there when it is started, and commands can put others in the
// place of directories of the workspace or the user.
func mayWait(rules *proc.Rules) bool {
	return rules == nil || !slices.ContainsFunc(slices.Concat(rules.Read, rules.Execute, rules.Write, rules.Devices), func(path string) bool {
		return path != "/" && path != self
	})
}

// take returns the interpreter that waits if it can run a command, nil if not.
func (i *interpreters) take(c proc.Command) *waiting {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := i.next
	if w == nil || !w.program.Fits(c) {
		return nil
	}
	i.next = nil
	return w
}

// prepare starts the interpreter of the next command, in case it is one like c. If it
// cannot be started, that command will say why.
func (i *interpreters) prepare(c proc.Command) {
	c = interpreting(c)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || !mayWait(c.Rules) {
		return
	}
	i.preparing.Go(func() { // ends when it is started, soon
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.closed || i.next != nil && i.next.program.Fits(c) {
			return
		}
		if i.next != nil {
			i.next.close()
			i.next = nil
		}
		if w, err := newWaiting(c); err == nil {
			i.next = w
		}
	})
}

// close ends the interpreter that waits.
func (i *interpreters) close() {
	i.mu.Lock()
	i.closed = true
	w := i.next
	i.next = nil
	i.mu.Unlock()
	i.preparing.Wait()
	if w != nil {
		w.close()
	}
}

// newWaiting starts an interpreter.
func newWaiting(c proc.Command) (*waiting, error) {
	theirs, ours, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }() // the process has it
	c.Files = []*os.File{theirs}
	program, err := proc.NewStandby(c)
	if err != nil {
		_ = ours.Close() // nothing is buffered
		return nil, err
	}
	return &waiting{program, ours}, nil
}

// start gives the interpreter its command.
func (w *waiting) start(ctx context.Context, c proc.Command, p interpreter.Program) (process *proc.Process, rest []byte, err error) {
	process, err = w.program.Start(ctx, c, func(files [4]*os.File) error {
		rest, err = interpreter.Hand(w.socket, p, files)
		return err
	})
	if err != nil {
		_ = w.socket.Close() // nothing is buffered
	}
	return process, rest, err
}

// close ends an interpreter that has no command.
func (w *waiting) close() {
	w.program.Close()
	_ = w.socket.Close() // nothing is buffered
}

// socketPair returns two ends, of which ours waits as files of Go do.
func socketPair() (theirs, ours *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(pair[1], true); err != nil {
		_, _ = unix.Close(pair[0]), unix.Close(pair[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(pair[0]), "interpreter"), os.NewFile(uintptr(pair[1]), "interpreter"), nil
}
