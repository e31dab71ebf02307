package main

import (
	"context"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type inputArgs struct {
	Job  string   `json:"job" jsonschema:"id of the job"`
	Data string   `json:"data,omitempty" jsonschema:"text to write" role:"script"`
	Keys []string `json:"keys,omitempty" jsonschema:"keys to press" enum:"enter,tab,escape,backspace,up,down,left,right,home,end,page_up,page_down,delete,ctrl_a,ctrl_c,ctrl_d,ctrl_e,ctrl_l,ctrl_r,ctrl_u,ctrl_z"`
	EOF  bool     `json:"eof,omitempty" jsonschema:"end the input"`
}

// keySequences returns what a terminal sends for each key.
func keySequences() map[string]string {
	return map[string]string{
		"enter": "\r", "tab": "\t", "escape": "\x1b", "backspace": "\x7f",
		"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
		"page_up": "\x1b[5~", "page_down": "\x1b[6~", "delete": "\x1b[3~",
		"ctrl_a": "\x01", "ctrl_c": "\x03", "ctrl_d": "\x04", "ctrl_e": "\x05", "ctrl_l": "\x0c", "ctrl_r": "\x12", "ctrl_u": "\x15", "ctrl_z": "\x1a",
	}
}

// inputTime is how long a call waits for a job to read its input.
const inputTime = 10 * time.Second

// input writes to a job.
func (s *shell) input(ctx context.Context, call *sdk.Call, in inputArgs) (tool.Result, error) {
	defer s.owners.begin(ownerOf(call))()
	j, err := s.owners.job(ownerOf(call), in.Job)
	if err != nil {
		return tool.Result{}, err
	}
	switch {
	case in.Data == "" && len(in.Keys) == 0 && !in.EOF:
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "data, keys and eof are all missing, expected at least one")
	case j.over():
		return tool.Result{}, tool.Errorf(tool.Failed, "the job no longer accepts input: %s", j.state())
	case len(in.Keys) > 0 && j.keys == nil:
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "the job has no terminal to press keys in").
			WithHint("use data, or start the job with pty")
	case in.EOF && j.keys != nil:
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "eof does not work in a job with a terminal").
			WithHint("press the key ctrl_d")
	}
	data := []byte(in.Data)
	keys := keySequences()
	for _, key := range in.Keys {
		data = append(data, keys[key]...)
	}
	bounded, cancel := context.WithTimeout(ctx, inputTime)
	defer cancel()
	if err := j.write(bounded, data); err != nil { // also before eof alone, to wait for earlier input
		return tool.Result{}, err
	}
	if in.EOF {
		_ = j.process.Stdin.Close() // it may be closed already
	}
	return tool.TextResult(fmt.Sprintf("Wrote %d bytes to %s", len(data), j.id)), nil
}
