package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// job is a command in the background.
type job struct {
	id      string
	shown   string // its command for people
	dir     string
	started time.Time
	process *proc.Process
	log     *log
	input   io.Writer // to it
	keys    *os.File  // our side of its terminal; nil if it has none
	// writing is set while something is written to it.
	writing atomic.Bool
	// ended is closed when it has ended and all that it has written is in log;
	// result and err are set before.
	ended  chan struct{}
	result proc.Result
	err    error
}

// terminal is the size of a job's terminal.
type terminal struct{ rows, cols int }

// startJob starts a job, which runs for a time at most. Its output goes to a log
// that keeps the last of it.
func startJob(ctx context.Context, p *program, screen *terminal) (*job, error) {
	j := &job{
		id: "job_" + strings.ToLower(rand.Text()[:8]), shown: p.shown, dir: p.command.Dir, started: time.Now(),
		log: newLog(int(p.settings.MaxOutput)), ended: make(chan struct{}),
	}
	c := p.command
	c.MaxOutput, c.Merge = -1, true
	theirs := (*os.File)(nil)
	if screen == nil {
		c.OpenStdin = true
		c.Output = func(_ proc.Stream, data []byte) { j.log.write(data) }
	} else {
		var err error
		if j.keys, theirs, err = proc.OpenTerminal(screen.rows, screen.cols); err != nil {
			return nil, err
		}
		c.Terminal = theirs
	}
	// The job outlives the call; its owner ends it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.settings.JobTime)
	var err error
	j.process, err = proc.Start(ctx, c)
	if theirs != nil {
		_ = theirs.Close() // the command has it
	}
	if err != nil {
		cancel()
		if j.keys != nil {
			_ = j.keys.Close() // nothing was written
		}
		return nil, err
	}
	if j.input = j.process.Stdin; j.keys != nil {
		j.input = j.keys
	}
	go j.attend(cancel) // ends with the job
	return j, nil
}

// attend looks after a job to its end.
func (j *job) attend(cancel context.CancelFunc) {
	defer cancel()
	var screen *outlet
	if j.keys != nil {
		screen = newOutlet(j.keys)
		screen.to(j.log.write)
		go screen.read() // ends when nothing holds the other side any more, or it is closed below
	}
	j.result, j.err = j.process.Wait()
	if screen != nil {
		screen.flush()     // a process of another job may hold the terminal, and go on
		_ = j.keys.Close() // nobody reads what is still to be written
	}
	j.log.end()
	close(j.ended)
}

// over reports whether the job has ended.
func (j *job) over() bool {
	select {
	case <-j.ended:
		return true
	default:
		return false
	}
}

// state says how the job is, for people.
func (j *job) state() string {
	if !j.over() {
		return "running"
	}
	switch {
	case j.err != nil:
		return "ended, nobody knows how"
	case j.result.TimedOut:
		return "killed: its time was over"
	case j.result.Killed || j.result.Canceled:
		return "killed"
	case j.result.Signal != 0:
		return "ended by " + signalName(j.result.Signal)
	}
	return fmt.Sprintf("ended with exit code %d", j.result.ExitCode)
}

// write writes to the job, and waits until it has taken all of it or ctx ends.
func (j *job) write(ctx context.Context, data []byte) error {
	if !j.writing.CompareAndSwap(false, true) {
		return tool.Errorf(tool.Conflict, "the job has not read its earlier input yet").WithHint("wait, or end it with process_kill")
	}
	written := make(chan error, 1)
	go func() { // ends with the job at the latest
		_, err := j.input.Write(data)
		j.writing.Store(false)
		written <- err
	}()
	select {
	case err := <-written:
		if err != nil {
			return tool.Errorf(tool.Failed, "the job takes no input: it has ended, or has closed it").WithCause(err)
		}
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		return tool.Errorf(tool.Timeout, "the job has not read all of its input yet; it gets the rest when it reads on")
	}
}
