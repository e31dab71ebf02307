//go:build !linux

package proc

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/internal/landlock"
	"github.com/toolhost/toolhost/internal/proctree"
	"github.com/toolhost/toolhost/sdk/tool"
)

// running is the command itself.
type running struct{ process *os.Process }

// signal signals the command's process group.
func (r *running) signal(sig syscall.Signal) error {
	return syscall.Kill(-r.process.Pid, sig)
}

// start starts the command with its streams, which it then owns.
func (p *Process) start(ctx context.Context, c *Command) error {
	if c.Rules != nil && !c.Rules.Optional {
		p.streams.closeTheirs()
		p.streams.closeOurs()
		_, err := landlock.ABI()
		return tool.Errorf(tool.Unavailable, "this system cannot restrict the command to its rules").
			WithHint("%v", err).WithCause(err)
	}
	process, err := os.StartProcess(c.Path, append([]string{c.Path}, c.Args...), &os.ProcAttr{
		Dir:   c.Dir,
		Env:   append([]string{}, c.Env...), // nil would mean the plugin's
		Files: append(p.streams.theirs[:], c.Files...),
		Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: c.Terminal != nil},
	})
	p.streams.closeTheirs()
	if err != nil {
		p.streams.closeOurs()
		if info, statErr := os.Stat(c.Dir); statErr != nil || !info.IsDir() {
			return c.explainDir(err)
		}
		return c.explainExecute(err)
	}
	p.streams.start(c)
	r := &running{process: process}
	p.setRunning(r)
	go p.attend(ctx, c, r, time.Now()) // ends with the command; Wait waits for it
	return nil
}

// attend waits for the command's end, and stops it when it must end.
func (p *Process) attend(ctx context.Context, c *Command, r *running, begun time.Time) {
	defer close(p.done)
	exited := make(chan *os.ProcessState, 1)
	go func() { // ends with the command, for which attend waits
		state, err := r.process.Wait()
		if err != nil {
			p.err = fmt.Errorf("wait for the command: %w", err)
		}
		exited <- state
	}()
	done, kill := ctx.Done(), p.kill
	var grace <-chan time.Time
	for {
		select {
		case state := <-exited:
			p.setRunning(nil)
			proctree.KillGroup(r.process.Pid)
			p.end(state, begun)
			return
		case <-done:
			done = nil
			p.result.stopped(ctx)
			if c.Grace > 0 {
				grace = time.After(c.Grace)
				_ = r.signal(syscall.SIGTERM) // fails if the command has ended
				_ = r.signal(syscall.SIGCONT)
				continue
			}
			proctree.KillGroup(r.process.Pid)
		case <-kill:
			kill = nil
			p.result.Killed = !p.result.TimedOut && !p.result.Canceled
			proctree.KillGroup(r.process.Pid)
		case <-grace:
			proctree.KillGroup(r.process.Pid)
		}
	}
}

// end records how the command ended.
func (p *Process) end(state *os.ProcessState, begun time.Time) {
	p.result.Duration = time.Since(begun)
	p.result.ExitCode = -1
	if state != nil {
		if status, ok := state.Sys().(syscall.WaitStatus); ok {
			p.result.exited(status)
		}
		p.result.CPUTime = state.UserTime() + state.SystemTime()
	}
	p.streams.finish()
	p.result.Stdout, p.result.Stderr = p.streams.capture(Stdout), p.streams.capture(Stderr)
}
