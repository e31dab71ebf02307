package daemon

import (
	"context"
	"errors"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// drain starts no new calls, lets those under way finish for as long as
// server.grace says, and cancels the others. Callers are served meanwhile, and have the
// outcomes of their calls.
func (d *Daemon) drain(ctx context.Context) error {
	close(d.stopping)
	defer close(d.idle)
	p := &d.parts
	if p.pipeline == nil {
		return nil
	}
	grace := d.config.Load().Grace
	if p.mcp != nil {
		p.mcp.Leave(grace)
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	p.pipeline.Drain(ctx)
	return p.pipeline.Close()
}

// handOver makes room for a host that stays. An ephemeral host ends with its command,
// which needs it until then.
func (d *Daemon) handOver() httpapi.Handover {
	if !d.opts.Ephemeral {
		d.yield()
	}
	return httpapi.Handover{Ephemeral: d.opts.Ephemeral, GraceMS: d.config.Load().Grace.Milliseconds()}
}

// stop takes down what build has built, last first, when no call is under way: callers
// are turned away, processes end, and what they have left is written.
func (p *parts) stop(ctx context.Context) error {
	var errs []error
	if p.front != nil {
		p.front.close()
		errs = append(errs, p.front.wait())
	}
	if p.mcp != nil {
		errs = append(errs, p.mcp.Close())
	}
	if p.supervisor != nil {
		errs = append(errs, p.supervisor.Close())
	}
	if p.watcher != nil {
		p.watcher.stop()
	}
	if p.launcher != nil {
		errs = append(errs, p.launcher.Close())
	}
	if p.approvals != nil {
		errs = append(errs, p.approvals.Close())
	}
	if p.grants != nil {
		errs = append(errs, p.grants.Close())
	}
	if p.results != nil {
		errs = append(errs, p.results.Close())
	}
	if p.journal != nil {
		errs = append(errs, p.journal.Close(ctx))
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	if p.lock != nil {
		errs = append(errs, p.lock.Close())
	}
	return errors.Join(errs...)
}
