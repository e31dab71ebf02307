package daemon

import (
	"context"

	"github.com/toolhost/toolhost/host/internal/call/hosttools"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// runner carries calls of the host's own tools to them, and all others to the
// plugins.
type runner struct {
	own     *hosttools.Tools // which need the pipeline: set before the first call
	plugins *supervisor.Supervisor
}

var (
	_ pipeline.Runner = (*runner)(nil)
	_ pipeline.Hider  = (*runner)(nil)
)

// of returns who has the tools that are listed under a plugin's name.
func (r *runner) of(plugin string) pipeline.Runner {
	if plugin == catalog.HostPlugin {
		return r.own
	}
	return r.plugins
}

// Run implements [pipeline.Runner].
func (r *runner) Run(ctx context.Context, plugin, digest string, call tool.Call, sink tool.Sink) (tool.Result, bool, error) {
	return r.of(plugin).Run(ctx, plugin, digest, call, sink)
}

// Preview implements [pipeline.Runner].
func (r *runner) Preview(ctx context.Context, plugin, digest string, call tool.Call) (tool.Preview, error) {
	return r.of(plugin).Preview(ctx, plugin, digest, call)
}

// Unhidden implements [pipeline.Hider]. The host's own tools execute nothing.
func (r *runner) Unhidden(plugin string) bool {
	return plugin != catalog.HostPlugin && r.plugins.Unhidden(plugin)
}
