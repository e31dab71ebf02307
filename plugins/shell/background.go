package main

import (
	"context"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type backgroundArgs struct {
	commandArgs
	Pty  bool `json:"pty,omitempty" jsonschema:"run in a terminal"`
	Rows int  `json:"rows,omitempty" jsonschema:"its rows" min:"1" max:"1000" default:"24"`
	Cols int  `json:"cols,omitempty" jsonschema:"its columns" min:"1" max:"1000" default:"80"`
}

// background starts a job.
func (s *shell) background(ctx context.Context, call *sdk.Call, in backgroundArgs) (tool.Result, error) {
	term := "dumb"
	var screen *terminal
	if in.Pty {
		if in.Stdin != "" {
			return tool.Result{}, tool.Errorf(tool.InvalidArgument, "stdin cannot be given to a job with a terminal").
				WithHint("write to it with process_input")
		}
		term, screen = "xterm-256color", &terminal{in.Rows, in.Cols}
	}
	p, err := s.prepare(call, in.commandArgs, term)
	if err != nil {
		return tool.Result{}, err
	}
	if in.Command != "" {
		runBash(p, in.Command)
	}
	j, err := s.owners.startJob(ownerOf(call), func() (*job, error) {
		j, err := startJob(ctx, p, screen)
		if err != nil {
			err = notStarted(err)
		}
		return j, err
	})
	if err != nil {
		return tool.Result{}, err
	}
	result := tool.TextResult("Started " + j.id + ". Read its output with process_output. The job ends with this session.")
	result.Metadata = map[string]any{"job": j.id, "cwd": j.dir}
	return result, nil
}
