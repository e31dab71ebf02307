package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/toolhost/toolhost/internal/proctree"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Command is a program that the host runs for what it prints, as the administrator has configured:
// with the rights of the host, and not confined.
type Command struct {
	// Argv is the absolute path of the program, and its arguments.
	Argv []string
	// Env is the whole environment of the program.
	Env []string
	// Input is what it may read from its standard input.
	Input []byte
	// Timeout is how long it may run, MaxOutput how much it may print.
	Timeout   time.Duration
	MaxOutput tool.ByteSize
}

// Output runs a command and returns what it prints. The command has no terminal, and the working
// directory /. When the program ends, its process group is killed; when ctx ends or the time
// is over, so is everything that it has started. On Linux, the program dies with the host, and
// inherits none of its descriptors.
//
// The error completes "the program ..." and has the exit status and the first line of the
// program's standard error, escaped for display.
func Output(ctx context.Context, c Command) (out []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("did not end within %v", c.Timeout))
	defer cancel()
	pipes, err := openPipes(false)
	if err != nil {
		return nil, fmt.Errorf("was not started: %w", err)
	}
	closeAll(pipes.order.w, pipes.report.r)
	if err := keepDescriptors(); err != nil {
		pipes.closeTheirs()
		pipes.closeOurs()
		return nil, fmt.Errorf("was not started: %w", err)
	}
	proctree.OnOwnThread(func() { // which lives as long as the program, for the parent-death signal
		var program *os.Process
		program, err = os.StartProcess(c.Argv[0], c.Argv, &os.ProcAttr{
			Dir: "/", Env: c.Env, Files: []*os.File{pipes.stdin.r, pipes.stdout.w, pipes.stderr.w}, Sys: new(plan).attr(nil),
		})
		pipes.closeTheirs()
		if err != nil {
			closeAll(pipes.stdin.w, pipes.stdout.r, pipes.stderr.r)
			err = fmt.Errorf("was not started: %w", err)
			return
		}
		p := newProcess(program, pipes, nil)
		defer p.closeStdio()
		out, err = p.output(ctx, c.Input, c.MaxOutput)
	})
	return out, err
}

// output waits for the end of a program without a launcher, and returns what it has printed.
func (p *Process) output(ctx context.Context, input []byte, most tool.ByteSize) (out []byte, err error) {
	defer context.AfterFunc(ctx, p.Kill)()
	var reading, writing sync.WaitGroup
	writing.Go(func() { // ends when the program has read it, or with Stdin
		_, _ = p.Stdin.Write(input) // the program may ignore it
		_ = p.Stdin.Close()
	})
	var readErr error
	var complaint string
	reading.Go(func() { // ends with the output
		out, readErr = io.ReadAll(io.LimitReader(p.stdout, int64(most)+1))
		if len(out) > int(most) {
			p.Kill()
		}
	})
	reading.Go(func() { // ends with the output
		complaint = tool.Visible(firstLine(p.stderr))
		_, _ = io.Copy(io.Discard, p.stderr) // so that the program does not wait
	})
	p.reap()
	_ = p.Stdin.Close() // if something else holds the other end and does not read
	writing.Wait()
	p.stdout.End()
	p.stderr.End()
	reading.Wait()
	switch {
	case len(out) > int(most):
		return nil, fmt.Errorf("printed more than %v", most)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w%s", context.Cause(ctx), complaint)
	case p.exit.State == nil:
		return nil, errors.New("ended, and the system does not say how")
	case !p.exit.State.Success():
		return nil, fmt.Errorf("ended with %v%s", p.exit.State, complaint)
	}
	return out, readErr
}
