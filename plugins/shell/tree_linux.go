package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/plugins/shell/internal/interpreter"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// executesTrees says that commands can be executed by their trees.
const executesTrees = true

// self is this program, for whatever the plugin executes.
const self = "/proc/self/exe"

// runTree runs a command by its tree. Its second result is why a part of it was refused.
func (s *shell) runTree(ctx context.Context, call *sdk.Call, p *program, tree json.RawMessage) (result proc.Result, refused, err error) {
	c := p.command
	if c.Rules != nil {
		rules := *c.Rules
		rules.Execute = append(slices.Clone(rules.Execute), self)
		c.Rules = &rules
	}
	program := interpreter.Program{Tree: tree, Writable: s.writable(call, p)}
	if bytes.Contains(tree, []byte(`"ProcSubst"`)) {
		if program.Pipes, err = os.MkdirTemp(p.at.tmp, "pipes-"); err != nil {
			return proc.Result{}, nil, err
		}
		defer func() { _ = os.RemoveAll(program.Pipes) }() // the scratch directory goes with the plugin
	}
	theirs, ours, err := socketPair()
	if err != nil {
		return proc.Result{}, nil, err
	}
	defer ours.Close()
	c.Path, c.Args, c.Files = self, []string{interpreter.Argument}, []*os.File{theirs}
	process, err := proc.Start(ctx, c)
	_ = theirs.Close() // the process has it
	if err != nil {
		return proc.Result{}, nil, err
	}
	served := make(chan error, 1)
	go func() { // ends with the process, which has the only other end of the socket
		served <- interpreter.Serve(ours, program, func(e tool.Execution) error { return call.MayRun(ctx, e) })
	}()
	result, err = process.Wait()
	_ = ours.Close() // whatever is left of the process asks nothing more
	return result, <-served, err
}

// writable are the directories in which commands may put programs.
func (s *shell) writable(call *sdk.Call, p *program) []string {
	all := slices.Concat(call.Roots(), []string{p.at.home, p.at.tmp, s.tmp(), "/tmp", "/var/tmp", "/dev/shm"})
	for _, dir := range all {
		if target, err := filepath.EvalSymlinks(dir); err == nil && target != dir {
			all = append(all, target)
		}
	}
	return all
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
