package main

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/plugins/shell/internal/interpreter"
	"github.com/toolhost/toolhost/sdk/proc"
)

// self is the path of this program.
const self = "/proc/self/exe"

// pause is the time from the end of a command to the start of the next
// interpreter, which would compete with the result of the command for a processor.
const pause = 10 * time.Millisecond

// interpreters starts the process for each command that is executed from its tree.
// It keeps one more process ready for the next command, because starting one takes
// longer than most commands. The first is started for the first such command.
type interpreters struct {
	preparing sync.WaitGroup

	mu     sync.Mutex // guards the rest, and is held while the next one is started
	next   *waiting   // the process kept ready; nil if there is none
	closed bool
}

// waiting is an interpreter without a command. Its limits and rules are already
// set.
type waiting struct {
	program *proc.Standby
	socket  *os.File
}

// start starts an interpreter with a command. The caller must write rest, the rest
// of the program, to the socket.
func (i *interpreters) start(ctx context.Context, c proc.Command, p interpreter.Program) (process *proc.Process, socket *os.File, rest []byte, err error) {
	c = interpreting(c)
	if w := i.take(c); w != nil {
		process, rest, err = w.start(ctx, c, p)
		if err == nil || ctx.Err() != nil {
			return process, w.socket, rest, err
		}
	} // it may have been killed while it waited
	w, err := newWaiting(c)
	if err != nil {
		return nil, nil, nil, err
	}
	process, rest, err = w.start(ctx, c, p)
	return process, w.socket, rest, err
}

// interpreting returns the command that runs an interpreter for c.
func interpreting(c proc.Command) proc.Command {
	c.Path, c.Args, c.Env = self, []string{interpreter.Argument}, []string{} // the command's environment must not affect the interpreter
	if c.Rules != nil {
		rules := *c.Rules
		rules.Execute = append(slices.Clone(rules.Execute), self)
		c.Rules = &rules
	}
	return c
}

// mayWait reports whether an interpreter may be started before its command. Rules
// apply to the files that exist when the process starts, and commands can replace
// directories of the workspace or the user.
func mayWait(rules *proc.Rules) bool {
	return rules == nil || !slices.ContainsFunc(slices.Concat(rules.Read, rules.Execute, rules.Write, rules.Devices), func(path string) bool {
		return path != "/" && path != self
	})
}

// take returns the waiting interpreter if it can run c, and nil if not.
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

// prepare starts an interpreter for the next command after a pause, in case that
// command has the same limits and rules as c. An error is dropped: the next command
// will report it.
func (i *interpreters) prepare(c proc.Command) {
	c = interpreting(c)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || !mayWait(c.Rules) {
		return
	}
	i.preparing.Add(1)
	time.AfterFunc(pause, func() { // ends soon, when the process is started
		defer i.preparing.Done()
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

// close ends the waiting interpreter.
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
	program, socket, err := proc.NewStandby(c)
	if err != nil {
		return nil, err
	}
	return &waiting{program, socket}, nil
}

// start passes the command to the interpreter.
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
