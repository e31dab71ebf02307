//go:build !linux

package main

import (
	"context"
	"encoding/json"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// executesTrees says that commands can be executed by their trees.
const executesTrees = false

// interpreters would execute them.
type interpreters struct{}

func (*interpreters) close() {}

func (*shell) runTree(context.Context, *sdk.Call, *program, json.RawMessage) (result proc.Result, refused, err error) {
	return proc.Result{}, nil, tool.Errorf(tool.Unavailable, "commands are executed by their trees on Linux only")
}
