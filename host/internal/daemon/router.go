package daemon

import (
	"context"

	"github.com/toolhost/toolhost/host/internal/call/hosttools"
	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

// router runs calls of the host's own tools itself, and sends all others to plugins.
type router struct {
	own     *hosttools.Tools // they need the pipeline: set before the first call
	plugins *supervisor.Supervisor
}

var (
	_ pipeline.Runner = (*router)(nil)
	_ pipeline.Hider  = (*router)(nil)
	_ pipeline.Killer = (*router)(nil)
)

// of returns the runner of a plugin's tools.
func (r *router) of(plugin string) pipeline.Runner {
	if plugin == catalog.HostPlugin {
		return r.own
	}
	return r.plugins
}

// Run implements [pipeline.Runner].
func (r *router) Run(ctx context.Context, plugin, digest string, call tool.Call, sink tool.Sink) (tool.Result, bool, error) {
	return r.of(plugin).Run(ctx, plugin, digest, call, sink)
}

// Preview implements [pipeline.Runner].
func (r *router) Preview(ctx context.Context, plugin, digest string, call tool.Call) (tool.Preview, error) {
	return r.of(plugin).Preview(ctx, plugin, digest, call)
}

// Unhidden implements [pipeline.Hider]. The host's own tools execute nothing.
func (r *router) Unhidden(plugin, user, session string) bool {
	return plugin != catalog.HostPlugin && r.plugins.Unhidden(plugin, user, session)
}

// Kill implements [pipeline.Killer]. The host's own tools have no processes.
func (r *router) Kill(ctx context.Context, covers func(user, plugin string) bool) (killed, left int) {
	return r.plugins.Kill(ctx, covers)
}

// Revive implements [pipeline.Killer].
func (r *router) Revive(ctx context.Context) { r.plugins.Revive(ctx) }
