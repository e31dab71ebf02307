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

// living is the shell of a session. It reads one line for each command from its
// standard input, runs the command with its own input and outputs, and then reports
// how the command ended. One command runs at a time.
type living struct {
	id      string
	process *proc.Process
	stop    context.CancelFunc // ends it, after the grace period
	ended   chan ending        // its report after a command, buffers one; closed when the shell has ended
	outputs [2]*outlet         // standard output, standard error

	mu     sync.Mutex // guards everything below
	number int        // how many commands it has run
	dir    string     // its directory; "" if that no longer exists
	asked  string     // the id of the order it must report on; "" if there is none
}

// ending is the shell's report on a command.
type ending struct {
	order string // its id
	code  int
	dir   string
}

// The shell's descriptors for its reports and for the outputs of commands. Programs
// that a command runs do not inherit them. Bash itself keeps copies, so the id of
// an order shows that a report comes from the shell. This protects against
// accidents and other programs, not against the session's own functions and traps:
// a function named builtin is called with the id, and a DEBUG trap reads it in
// BASH_COMMAND. So commands of a session can forge an exit code or directory, of
// that session only.
const (
	tellFD = 3
	outFD  = 4
	errFD  = 5
)

// maxTold is the maximum size of a report.
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
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx)) // it outlives the call; its session ends it
	if l.process, err = proc.Start(ctx, c); err != nil {
		l.stop()
		return nil, err
	}
	l.outputs = [2]*outlet{newOutlet(ours[1]), newOutlet(ours[2])}
	for _, o := range l.outputs {
		go o.read() // ends with the shell and all that it has started
	}
	go l.hear(ours[0]) // ends with the shell, or after an invalid or the last report
	return l, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing is buffered
	}
}

// hear reads the shell's reports. If a report is not about the current order, a
// command wrote it and the state of the shell is unknown, so hear kills the shell.
// If the descriptor is closed, the shell is ending, or another program has replaced
// it: the caller waits for its end. A command that closes the descriptor and lets
// the shell run on, or that keeps it from reporting, runs into its time-out.
func (l *living) hear(from *os.File) {
	defer from.Close()
	defer close(l.ended)
	for told := bufio.NewReaderSize(from, maxTold); ; {
		e, err := readEnding(told)
		if errors.Is(err, io.EOF) {
			return // the shell is ending
		}
		if err != nil || !l.answered(e.order) {
			l.process.Kill()
			return
		}
		l.ended <- e // does not block: each order is answered once
	}
}

// readEnding reads the shell's report on a command.
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

// ask records the order that the shell must report on. answered reports whether id
// is that order, and clears it.
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

// order is a command for the shell of a session.
type order struct {
	id         string // unknown to the programs that a command runs
	text       string
	dir        string // "" means the shell's current directory
	stdin      string // path of a file
	interleave bool
}

// line returns the order as input for the shell. The text is quoted as one word,
// whatever it contains, and the shell restores its descriptors after the command.
func (o order) line() string {
	errTo := errFD
	if o.interleave {
		errTo = outFD
	}
	run := fmt.Sprintf("builtin eval %s <%s >&%d 2>&%d %d>&- %d>&- %d>&-", quoted(o.text), quoted(o.stdin), outFD, errTo, tellFD, outFD, errFD)
	if o.dir != "" {
		run = fmt.Sprintf("builtin cd -- %s 2>&%d && %s", quoted(o.dir), errTo, run)
	}
	// Each builtin gets the descriptor for itself: traps of the command write
	// elsewhere.
	return run + fmt.Sprintf(`; builtin printf '%s\0%%d\0' "$?" >&%[2]d; builtin pwd -P >&%[2]d 2>/dev/null || :; builtin printf '\0' >&%[2]d`+"\n", o.id, tellFD)
}

// run runs a command and passes its outputs to take. If ctx ends, the shell is
// ended. An error means that the shell failed, not the command.
func (l *living) run(ctx context.Context, o order, keep tool.ByteSize, take func(proc.Stream, []byte)) (outcome, error) {
	begun := time.Now()
	records := [2]*proc.Recorder{proc.NewRecorder(keep), proc.NewRecorder(keep)}
	var taking sync.Mutex // held while take runs
	for i, stream := range []proc.Stream{proc.Stdout, proc.Stderr} {
		l.outputs[i].to(func(data []byte) {
			_, _ = records[i].Write(data) // a Recorder never fails
			taking.Lock()
			defer taking.Unlock()
			take(stream, data)
		})
	}
	l.ask(o.id)
	written := make(chan struct{})
	go func() { // ends when the shell has read the line, or has ended
		defer close(written)
		_, _ = io.WriteString(l.process.Stdin, o.line()) // the shell's end reports a failure
	}()
	var told ending
	alive := false
	select {
	case told, alive = <-l.ended:
	case <-ctx.Done():
		select {
		case told, alive = <-l.ended: // the command ended at the same time
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

// awaitEnd waits for the end of the shell, or of the program that replaced it by
// exec. If ctx ends first, awaitEnd ends the process.
func (l *living) awaitEnd(ctx context.Context) {
	select {
	case <-l.process.Done():
	case <-ctx.Done():
		l.stop()
		<-l.process.Done()
	}
}
