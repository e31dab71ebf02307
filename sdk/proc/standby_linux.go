package proc

import (
	"context"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Standby is a program that is executed before there is a command for it, for programs that
// take longer to start than to run. It has the limits and rules of that command from its first
// instruction on, and runs one command. The caller tells the program the rest over a socket:
// the command's files, environment and working directory.
type Standby struct {
	c      Command // as executed
	made   string  // see [Command.made]
	r      *running
	order  []byte // the rest of the order for the reaper
	limits []limit

	preparing sync.WaitGroup // while the next command's reaper is started
}

// NewStandby executes a program with the Path, Args, Env, Limits and Rules of c, in "/", with
// /dev/null as its standard streams and a socket as descriptor 3. The caller gets the other end
// and must close it. NewStandby returns before the program is executed: [Standby.Start] reports
// a failure. The program lives until its command ends, or until Close.
func NewStandby(c Command) (s *Standby, socket *os.File, err error) {
	theirs, socket, err := socketPair()
	if err != nil {
		return nil, nil, fmt.Errorf("start a program: %w", err)
	}
	defer func() {
		_ = theirs.Close() // the program has inherited it
		if err != nil {
			_ = socket.Close() // nothing is buffered
			socket = nil
		}
	}()
	c, err = Command{
		Path: c.Path, SearchPath: c.SearchPath, Args: c.Args, Env: c.Env, Files: []*os.File{theirs}, Limits: c.Limits, Rules: c.Rules,
	}.checked()
	if err != nil {
		return nil, nil, err
	}
	s = &Standby{c: c}
	if s.made, err = s.c.made(); err != nil {
		return nil, nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("start a program: %w", err)
	}
	defer func() { _ = null.Close() }() // nothing is buffered
	s.r, s.order, s.limits, err = startReaper(&s.c, [3]*os.File{null, null, null})
	if err != nil {
		return nil, nil, err
	}
	s.r.once.Store(true)        // Close waits for its end
	prepareReaper(&s.preparing) // for a command without a waiting program
	return s, socket, nil
}

// made describes what a program is executed with.
func (c *Command) made() (string, error) {
	limits, err := c.Limits.resources()
	if err != nil {
		return "", err
	}
	order, err := c.order(limits).Encode()
	return string(order), err
}

// Fits reports whether the program was executed with the Path, Args, Limits and Rules of c.
// The rules' paths mean the files that existed then. So a program should not wait for a
// command if other commands can replace files that its rules name.
func (s *Standby) Fits(c Command) bool {
	likewise := s.c
	likewise.Path, likewise.Args, likewise.Limits, likewise.Rules = c.Path, c.Args, c.Limits, c.Rules
	made, err := likewise.made()
	return err == nil && made == s.made
}

// Start starts a command, like the function [Start], with the Dir, standard streams and Grace
// of c. hand passes the program its standard input, output and error, and its directory, a
// descriptor that it can only change to. They are closed when hand returns. The result has the
// final directory only if the program has changed to that directory. A Standby can be started
// only once, even if Start fails.
func (s *Standby) Start(ctx context.Context, c Command, hand func(files [4]*os.File) error) (*Process, error) {
	p, dir, err := s.open(ctx, &c)
	if err != nil {
		s.Close()
		return nil, err
	}
	defer func() { _ = dir.Close() }() // nothing is buffered
	err = hand([4]*os.File{p.streams.theirs[0], p.streams.theirs[1], p.streams.theirs[2], dir})
	p.streams.closeTheirs()
	if err != nil {
		p.streams.closeOurs()
		s.Close()
		return nil, fmt.Errorf("hand a program its files: %w", err)
	}
	_ = s.r.signal(unix.SIGCONT) // another command may have stopped it
	if err := p.attend(ctx, &c, s.r, s.order, s.limits); err != nil {
		return nil, err
	}
	return p, nil
}

// open opens the streams and the directory of a command.
func (s *Standby) open(ctx context.Context, c *Command) (*Process, *os.File, error) {
	c.Path, c.Args, c.Env, c.Files, c.Limits, c.Rules = s.c.Path, s.c.Args, s.c.Env, nil, s.c.Limits, s.c.Rules
	if ctx.Err() != nil {
		return nil, nil, notStarted(ctx, c)
	}
	checked, err := c.checked()
	if err != nil {
		return nil, nil, err
	}
	*c = checked
	fd, err := unix.Open(c.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Faccessat(unix.AT_FDCWD, c.Dir, unix.X_OK, unix.AT_EACCESS)
	}
	dir := os.NewFile(uintptr(fd), c.Dir)
	if err != nil {
		_ = dir.Close() // may be nil
		return nil, nil, c.explainDir(err)
	}
	p, err := open(c)
	if err != nil {
		_ = dir.Close() // nothing is buffered
		return nil, nil, err
	}
	return p, dir, nil
}

// Close ends a program that has no command, and returns when it has ended.
func (s *Standby) Close() {
	p := newProcess(&streams{})
	p.Kill()
	_ = p.attend(context.Background(), &s.c, s.r, s.order, s.limits) //nolint:forbidigo // nothing else ends it
	<-s.r.gone
	s.preparing.Wait()
}
