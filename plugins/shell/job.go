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
	shown   string // its command as people see it
	dir     string
	started time.Time
	process *proc.Process
	log     *log
	input   io.Writer // its standard input
	keys    *os.File  // the plugin's side of its terminal; nil if it has none
	// writing is set while a call writes to the job.
	writing atomic.Bool
	// ended is closed when the job has ended and its whole output is in log. result
	// and err are set before.
	ended  chan struct{}
	result proc.Result
	err    error
}

// terminal is the size of a job's terminal.
type terminal struct{ rows, cols int }

// startJob starts a job, which is killed after the setting job_time. Its log keeps
// the end of its output.
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
		_ = theirs.Close() // the command has inherited it
	}
	if err != nil {
		cancel()
		if j.keys != nil {
			_ = j.keys.Close() // nothing is buffered
		}
		return nil, err
	}
	if j.input = j.process.Stdin; j.keys != nil {
		j.input = j.keys
	}
	go j.attend(cancel) // ends with the job
	return j, nil
}

// attend waits for the end of a job and collects its output.
func (j *job) attend(cancel context.CancelFunc) {
	defer cancel()
	var screen *outlet
	if j.keys != nil {
		screen = newOutlet(j.keys)
		screen.to(j.log.write)
		go screen.read() // ends when no process holds the other side, or keys is closed below
	}
	j.result, j.err = j.process.Wait()
	if screen != nil {
		screen.flush()     // a process of another job may still hold the terminal
		_ = j.keys.Close() // later output is discarded
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

// state describes the state of the job for people.
func (j *job) state() string {
	if !j.over() {
		return "running"
	}
	switch {
	case j.err != nil:
		return "ended for an unknown reason"
	case j.result.TimedOut:
		return "killed: it ran longer than allowed"
	case j.result.Killed || j.result.Canceled:
		return "killed"
	case j.result.Signal != 0:
		return "ended by " + signalName(j.result.Signal)
	}
	return fmt.Sprintf("ended with exit code %d", j.result.ExitCode)
}

// write writes to the job and waits until the job has read all of it or ctx ends.
func (j *job) write(ctx context.Context, data []byte) error {
	if !j.writing.CompareAndSwap(false, true) {
		return tool.Errorf(tool.Conflict, "the job has not read its earlier input yet").WithHint("wait, or end the job with process_kill")
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
			return tool.Errorf(tool.Failed, "the job does not accept input: it has ended or closed its standard input").WithCause(err)
		}
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		return tool.Errorf(tool.Timeout, "the job has not read all of its input yet; it will get the rest when it continues reading")
	}
}
