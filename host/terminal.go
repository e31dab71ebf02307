package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sharedTerminal is a terminal on which questions are asked while others write, such as the log.
// Other output starts on a line of its own, and the question is repeated below it.
type sharedTerminal struct {
	input, output *os.File
	// resumed receives when the process goes on after Ctrl-Z.
	resumed chan os.Signal

	mu       sync.Mutex // guards the fields below
	question string     // the last line on the screen, which waits for an answer; "" if there is none
	torn     bool       // other output has followed the question
}

// Fd returns the file descriptor of the screen.
func (t *sharedTerminal) Fd() uintptr { return t.output.Fd() }

// Write implements [io.Writer], for output that does not belong to a question.
func (t *sharedTerminal) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.question != "" && !t.torn {
		t.torn = true
		if _, err := t.output.WriteString("\n"); err != nil {
			return 0, err
		}
	}
	return t.output.Write(text)
}

// newSharedTerminal shares a terminal. The process has at most one.
func newSharedTerminal(input, output *os.File) *sharedTerminal {
	t := &sharedTerminal{input: input, output: output, resumed: make(chan os.Signal, 1)}
	signal.Notify(t.resumed, unix.SIGCONT)
	return t
}

// errResumed ends a question that a shell's own lines have followed on the screen: the process
// was stopped meanwhile.
var errResumed = errors.New("the process was stopped and goes on")

// ask prints a question and returns the line that a person types afterwards. It calls look again
// and again; an error of it ends the question, and so does [errResumed].
func (t *sharedTerminal) ask(ctx context.Context, question string, look func() error) (string, error) {
	if err := discardInput(t.input); err != nil {
		return "", fmt.Errorf("discard what was typed before the question: %w", err)
	}
	select { // only what comes from here on is news
	case <-t.resumed:
	default:
	}
	if err := t.show(question); err != nil {
		return "", err
	}
	answer, err := readLine(ctx, t.input, func() error {
		select {
		case <-t.resumed:
			return errResumed
		default:
		}
		if err := look(); err != nil {
			return err
		}
		return t.repeat()
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && !t.torn { // no person has ended the line
		fmt.Fprint(t.output, "\n")
	}
	t.question = ""
	return strings.TrimSpace(answer), err
}

func (t *sharedTerminal) show(question string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.question, t.torn = question, false
	_, err := t.output.WriteString(question)
	return err
}

// repeat prints the question again if other output has followed it. What was typed so far stays:
// it is for the same question.
func (t *sharedTerminal) repeat() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.torn {
		return nil
	}
	t.torn = false
	_, err := t.output.WriteString(t.question)
	return err
}

// rows returns the height of the screen, or 0 if it is not known.
func (t *sharedTerminal) rows() int {
	size, err := unix.IoctlGetWinsize(int(t.output.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Row)
}

// inForeground reports whether this process may read from a terminal. A shell's background job
// that tries is stopped.
func inForeground(terminal *os.File) bool {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // an error means that there is no job control
}

// maxTyped bounds a typed line, in bytes. pollTerminal is the interval of checks whether the
// command must end.
const (
	maxTyped     = 4096
	pollTerminal = 100 * time.Millisecond
)

// readLine returns the next line from a terminal, or the cause of ctx's end. While it waits, it
// calls look; an error of it ends the wait.
func readLine(ctx context.Context, terminal *os.File, look func() error) (string, error) {
	for ctx.Err() == nil {
		if err := look(); err != nil {
			return "", err
		}
		ready := []unix.PollFd{{Fd: int32(terminal.Fd()), Events: unix.POLLIN}}
		switch n, err := unix.Poll(ready, int(pollTerminal.Milliseconds())); {
		case errors.Is(err, unix.EINTR) || err == nil && n == 0:
			continue
		case err != nil:
			return "", fmt.Errorf("read the answer: %w", err)
		}
		if !inForeground(terminal) {
			_ = pause(ctx, pollTerminal) // the loop sees the end of ctx
			continue
		}
		line := make([]byte, maxTyped) // a terminal returns one line at a time
		n, err := terminal.Read(line)
		if !bytes.HasSuffix(line[:n], []byte("\n")) { // Ctrl-D ends the input, also after some characters
			return "", fmt.Errorf("%w: there is no answer", errors.Join(errUndecided, err))
		}
		return string(line[:n]), nil
	}
	return "", context.Cause(ctx)
}

// terminals are the standard files that were terminals when the process started.
type terminals []*os.File

// terminals returns the terminals that the process runs on.
func (a *app) terminals() terminals {
	var all terminals
	for _, f := range []any{a.stdin, a.stdout, a.stderr} {
		if f, ok := f.(*os.File); ok && isTerminal(f) {
			all = append(all, f)
		}
	}
	return all
}

// closed reports whether one of them is gone: its window was closed, or its connection broke.
func (all terminals) closed() bool {
	for _, f := range all {
		if !isTerminal(f) {
			return true
		}
	}
	return false
}
