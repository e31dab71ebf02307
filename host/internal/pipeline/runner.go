package pipeline

import (
	"context"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Runner carries a call to whoever owns the tool.
type Runner interface {
	// Run returns the tool's result, or an error if there is none: a
	// [*tool.Error] that the caller may read, or anything else for the log.
	// When ctx ends, Run tells the tool to stop and returns at once.
	Run(ctx context.Context, plugin string, call tool.Call, sink tool.Sink) (tool.Result, error)
}
