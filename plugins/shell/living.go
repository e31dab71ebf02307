package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// living is the shell of a session. It reads from its standard input one line
// for each command, which has input and outputs of its own, and then tells how
// the command has ended. One command runs at a time.
type living struct {
	id      string
	process *proc.Process
	stop    context.CancelFunc // ends it, with the time of grace
	ended   chan ending        // what it tells after a command, with room for one; closed when it has ended
	outputs [2]*outlet         // standard output, error output

	mu     sync.Mutex // guards everything below
	number int        // commands that it has run
	dir    string     // where it is; "" if that does not exist any more
	asked  string     // the id of the order that it is to tell of; "" if there is none
}

// ending is how a command has ended.
type ending struct {
	order string // its id
	code  int
	dir   string
}

// The shell's descriptors: for what it tells, and for the outputs of commands.
// The programs that a command runs do not have them. Bash itself keeps copies, so
// that the id of an order says whether it is the shell that tells. That keeps out
// accidents and other programs, not the shell's own functions and traps: a function
// of the name builtin is called with the id, a DEBUG trap reads it in BASH_COMMAND.
// The commands of a session can so have it told a wrong exit code or directory, of
// that session only.
const (
	tellFD = 3
	outFD  = 4
	errFD  = 5
)

// maxTold is how long what a shell tells can be.
const maxTold = 16 << 10

// startLiving starts a shell.
func startLiving(ctx context.Context, p *program) (_ *living, err error) {
	l := &living{id: rand.Text(), dir: p.command.Dir, ended: make(chan ending, 1)}
	var ours, theirs []*os.File
	defer func() {
		closeAll(theirs)
		if err != nil {
			closeAll(ours)
		}
	}()
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	c := p.command
	c.Path, c.Args = "bash", bashArgs()
	c.Stdin, c.OpenStdin, c.MaxOutput, c.Files = []byte("BASH_ARGV0=bash\n"), true, -1, theirs
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx)) // its session ends it
	if l.process, err = proc.Start(ctx, c); err != nil {
		l.stop()
		return nil, err
	}
	l.outputs = [2]*outlet{newOutlet(ours[1]), newOutlet(ours[2])}
	for _, o := range l.outputs {
		go o.read() // ends with the shell and all that it has started
	}
	go l.hear(ours[0]) // ends with the shell, or when it tells nonsense or no more
	return l, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing is buffered
	}
}

// hear reads what the shell tells. If that is not about the order that it was
// given, a command has told it: nobody knows any more what the shell does, and it
// ends. If what it tells by is closed, it ends by itself, or is about to: another
// program may have taken its place, whose end is waited for. A command that closes
// it and lets the shell go on, or has it tell nothing, is waited for until its time
// is over.
func (l *living) hear(from *os.File) {
	defer from.Close()
	defer close(l.ended)
	for told := bufio.NewReaderSize(from, maxTold); ; {
		e, err := readEnding(told)
		if errors.Is(err, io.EOF) {
			return // it ends
		}
		if err != nil || !l.answered(e.order) {
			l.process.Kill()
			return
		}
		l.ended <- e // nothing else is in it: each order is answered once
	}
}

// readEnding reads what a shell tells after a command.
func readEnding(told *bufio.Reader) (ending, error) {
	var parts [3]string
	for i := range parts {
		part, err := told.ReadSlice(0)
		if err != nil {
			return ending{}, err
		}
		parts[i] = string(part[:len(part)-1])
	}
	code, err := strconv.Atoi(parts[1])
	if err != nil {
		return ending{}, err
	}
	e := ending{order: parts[0], code: code, dir: strings.TrimSuffix(parts[2], "\n")}
	if e.dir != "" && !filepath.IsAbs(e.dir) {
		return ending{}, fmt.Errorf("the directory %q is not absolute", e.dir)
	}
	return e, nil
}

// ask has the shell tell of an order, and answered reports whether it was asked
// to.
func (l *living) ask(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = id
}

func (l *living) answered(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.asked
	l.asked = ""
	return id == asked && id != ""
}

// order is a command for a living shell.
type order struct {
	id         string // which no program knows that a command runs
	text       string
	dir        string // "": where the shell is
	stdin      string // a file
	interleave bool
}

// line is the order as the shell reads it. Whatever is in the text, it is one
// word, and the shell takes back what the command does to the descriptors.
func (o order) line() string {
	errTo := errFD
	if o.interleave {
		errTo = outFD
	}
	run := fmt.Sprintf("builtin eval %s <%s >&%d 2>&%d %d>&- %d>&- %d>&-", quoted(o.text), quoted(o.stdin), outFD, errTo, tellFD, outFD, errFD)
	if o.dir != "" {
		run = fmt.Sprintf("builtin cd -- %s 2>&%d && %s", quoted(o.dir), errTo, run)
	}
	// Each has the descriptor for itself: traps of the command's write elsewhere.
	return run + fmt.Sprintf(`; builtin printf '%s\0%%d\0' "$?" >&%[2]d; builtin pwd -P >&%[2]d 2>/dev/null || :; builtin printf '\0' >&%[2]d`+"\n", o.id, tellFD)
}

// run runs a command and gives its outputs to take. If ctx ends, the shell does.
// The error is one of the shell's, not of the command.
func (l *living) run(ctx context.Context, o order, keep tool.ByteSize, take func(proc.Stream, []byte)) (outcome, error) {
	begun := time.Now()
	records := [2]*proc.Recorder{proc.NewRecorder(keep), proc.NewRecorder(keep)}
	var taking sync.Mutex // both outputs go to the one call
	for i, stream := range []proc.Stream{proc.Stdout, proc.Stderr} {
		l.outputs[i].to(func(data []byte) {
			_, _ = records[i].Write(data) // it never fails
			taking.Lock()
			defer taking.Unlock()
			take(stream, data)
		})
	}
	l.ask(o.id)
	written := make(chan struct{})
	go func() { // ends when the shell has read the line, or has ended
		defer close(written)
		_, _ = io.WriteString(l.process.Stdin, o.line()) // its end tells
	}()
	var told ending
	alive := false
	select {
	case told, alive = <-l.ended:
	case <-ctx.Done():
		select {
		case told, alive = <-l.ended: // the command has ended, too
		default:
		}
	}
	result := outcome{cwd: told.dir, lost: !alive, newShell: l.fresh()}
	if !alive {
		l.awaitEnd(ctx)
		var err error
		if result.Result, err = l.process.Wait(); err != nil {
			return outcome{}, err
		}
		result.cwd = result.Dir
		result.TimedOut = result.Canceled && errors.Is(ctx.Err(), context.DeadlineExceeded)
	}
	<-written
	for _, out := range l.outputs {
		out.flush()
	}
	result.Duration = time.Since(begun)
	result.Stdout, result.Stderr = records[0].Capture(), records[1].Capture()
	if alive {
		result.ExitCode = told.code
		l.mu.Lock()
		l.number++
		l.dir = told.dir
		l.mu.Unlock()
	}
	return result, nil
}

// fresh reports whether the shell has not run a command yet.
func (l *living) fresh() bool {
	_, number := l.state()
	return number == 0
}

// awaitEnd returns when the shell has ended, or what it has become by exec. If ctx
// ends before, it is stopped.
func (l *living) awaitEnd(ctx context.Context) {
	select {
	case <-l.process.Done():
	case <-ctx.Done():
		l.stop()
		<-l.process.Done()
	}
}
