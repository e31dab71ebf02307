package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolhost/toolhost/plugins/shell/internal/interpreter"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// executesTrees reports whether commands can be executed from their syntax trees.
const executesTrees = true

// runTree executes a command from its syntax tree. refused is the reason for which
// a part of it was refused, nil if none was.
func (s *shell) runTree(ctx context.Context, call *sdk.Call, p *program, tree json.RawMessage) (result proc.Result, refused, err error) {
	program := interpreter.Program{Tree: tree, Writable: s.writable(call, p), Environment: p.command.Env}
	if bytes.Contains(tree, []byte(`"ProcSubst"`)) {
		if program.Pipes, err = os.MkdirTemp(p.at.tmp, "pipes-"); err != nil {
			return proc.Result{}, nil, err
		}
		defer func() { _ = os.RemoveAll(program.Pipes) }() // the host removes the scratch directory when the plugin ends
	}
	process, socket, rest, err := s.interpreters.start(ctx, p.command, program)
	if err != nil {
		return proc.Result{}, nil, err
	}
	defer socket.Close()
	served := make(chan error, 1)
	go func() { // ends with the process, which holds the only other end of the socket
		served <- interpreter.Serve(socket, rest, func(e tool.Execution) error { return call.MayRun(ctx, e) })
	}()
	result, err = process.Wait()
	_ = socket.Close() // no remaining process can ask any more
	s.interpreters.prepare(p.command)
	return result, <-served, err
}

// writable returns the directories in which commands can place programs.
func (s *shell) writable(call *sdk.Call, p *program) []string {
	all := slices.Concat(call.Roots(), []string{p.at.home, p.at.tmp, s.tmp(), "/tmp", "/var/tmp", "/dev/shm"})
	for _, dir := range all {
		if target, err := filepath.EvalSymlinks(dir); err == nil && target != dir {
			all = append(all, target)
		}
	}
	return all
}
