package main

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type killArgs struct {
	Job    string `json:"job" jsonschema:"id of the job"`
	Signal string `json:"signal,omitempty" jsonschema:"signal to send" enum:"KILL,TERM,INT,HUP,QUIT,USR1,USR2,STOP,CONT,WINCH" default:"KILL"`
}

// kill ends a job or sends it a signal.
func (s *shell) kill(ctx context.Context, call *sdk.Call, in killArgs) (tool.Result, error) {
	defer s.owners.begin(ownerOf(call))()
	j, err := s.owners.job(ownerOf(call), in.Job)
	if err != nil {
		return tool.Result{}, err
	}
	if j.over() {
		return tool.TextResult(j.id + " had already ended: " + j.state()), nil
	}
	if in.Signal != "KILL" {
		err := j.process.Signal(unix.SignalNum("SIG" + in.Signal))
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return tool.Result{}, tool.Errorf(tool.Failed, "the signal cannot be sent to the job").WithCause(err)
		}
		return tool.TextResult("Sent SIG" + in.Signal + " to " + j.id), nil
	}
	j.process.Kill()
	select {
	case <-j.ended:
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	}
	return tool.TextResult(j.id + " was killed with everything it had started"), nil
}
