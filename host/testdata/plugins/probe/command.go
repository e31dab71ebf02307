package main

import (
	"context"
	"os/exec"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/proc"
)

type marked struct {
	Mark string `json:"mark" jsonschema:"an argument of each process, a number of seconds"`
	By   string `json:"by,omitempty" jsonschema:"the package that runs it" enum:"proc,exec" default:"proc"`
}

// forest is a shell that starts a process in the background, an orphan in a
// session of its own and one that it waits for. None heeds SIGTERM.
const forest = `trap "" TERM; (setsid sleep "$1" &); sleep "$1" & sleep "$1"; true`

// command runs forest.
func command(ctx context.Context, _ *sdk.Call, in marked) (string, error) {
	args := []string{"-c", forest, "sh", in.Mark}
	if in.By == "exec" {
		return "", exec.CommandContext(ctx, "/bin/sh", args...).Run()
	}
	_, err := proc.Run(ctx, proc.Command{Path: "/bin/sh", Args: args})
	if err != nil {
		return "", err
	}
	return "", ctx.Err()
}
