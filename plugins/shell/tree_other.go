//go:build !linux

package main

import (
	"context"
	"encoding/json"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/proc"
	"github.com/toolhost/toolhost/sdk/tool"
)

// executesTrees reports whether commands can be executed from their syntax trees.
const executesTrees = false

// interpreters does nothing on this system.
type interpreters struct{}

func (*interpreters) close() {}

func (*shell) runTree(context.Context, *sdk.Call, *program, json.RawMessage) (result proc.Result, refused, err error) {
	return proc.Result{}, nil, tool.Errorf(tool.Unavailable, "commands can be executed from their syntax trees on Linux only")
}
