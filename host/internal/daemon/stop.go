package daemon

import (
	"context"
	"errors"
	"slices"

	"github.com/toolhost/toolhost/host/internal/front/httpapi"
)

// drain starts no new calls, lets running calls finish for the time of server.grace, and
// cancels the rest. Callers are served meanwhile and get the outcomes of their calls.
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

// handOver makes room for a host that stays. An ephemeral host ends with its command, which
// needs it until then.
func (d *Daemon) handOver() httpapi.Handover {
	if !d.opts.Ephemeral {
		d.yield()
	}
	return httpapi.Handover{Ephemeral: d.opts.Ephemeral, GraceMS: d.config.Load().Grace.Milliseconds()}
}

// stop takes down the parts in the reverse order of build, when calls no longer run: it refuses
// callers, ends processes, and writes the remaining records.
func (p *parts) stop(ctx context.Context) error {
	var errs []error
	for _, closer := range slices.Backward(p.closers) {
		errs = append(errs, closer(ctx))
	}
	return errors.Join(errs...)
}
