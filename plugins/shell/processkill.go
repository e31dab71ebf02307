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
	Job    string `json:"job" jsonschema:"the job's id"`
	Signal string `json:"signal,omitempty" jsonschema:"KILL ends it with everything that it has started; any other goes to its process group, which may handle it" enum:"KILL,TERM,INT,HUP,QUIT,USR1,USR2,STOP,CONT,WINCH" default:"KILL"`
}

// kill ends a job, or signals it.
func (s *shell) kill(ctx context.Context, call *sdk.Call, in killArgs) (tool.Result, error) {
	defer s.owners.begin(ownerOf(call))()
	j, err := s.owners.job(ownerOf(call), in.Job)
	if err != nil {
		return tool.Result{}, err
	}
	if j.over() {
		return tool.TextResult(j.id + " has ended before: " + j.state()), nil
	}
	if in.Signal != "KILL" {
		err := j.process.Signal(unix.SignalNum("SIG" + in.Signal))
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return tool.Result{}, tool.Errorf(tool.Failed, "the job cannot be signalled").WithCause(err)
		}
		return tool.TextResult("Sent SIG" + in.Signal + " to " + j.id), nil
	}
	j.process.Kill()
	select {
	case <-j.ended:
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	}
	return tool.TextResult(j.id + " was killed with everything that it had started"), nil
}
