package daemon

import (
	"time"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/plugin/supervisor"
	"github.com/toolhost/toolhost/host/internal/state/metrics"
)

// buildMetrics makes the figures, before the parts that they are about.
func (d *Daemon) buildMetrics() {
	p := &d.parts
	p.metrics = metrics.New(metrics.Options{
		Version: d.opts.Version,
		Plugins: func() []metrics.Plugin { return measured(p.supervisor) },
		Pending: func() int { return p.approvals.Pending() },
	})
}

// observe counts what the pipeline reports.
func (p *parts) observe(step pipeline.Step, of pipeline.Observed, took time.Duration) {
	switch step {
	case pipeline.StepExecute:
		p.metrics.Executed(of.Plugin, of.Tool, took)
	case pipeline.StepEnd:
		p.metrics.Ended(of.Plugin, of.Tool, of.Status)
	}
}

// answered counts how long a question waited until it was answered or expired.
func (p *parts) answered(r approval.Record) {
	switch {
	case r.Created.IsZero(): // it could not be read
	case r.State == approval.Approved, r.State == approval.Rejected,
		r.State == approval.Expired && r.DecidedBy == "": // an approval that no call used expires too
		p.metrics.Answered(string(r.State), r.Decided.Sub(r.Created))
	}
}

// measured returns the plugins as they are now.
func measured(s *supervisor.Supervisor) []metrics.Plugin {
	memory, known := s.Resident()
	var all []metrics.Plugin
	for _, state := range s.Plugins() {
		p := metrics.Plugin{Name: state.Name, Crashes: state.Crashes, Memory: -1}
		switch state.Phase {
		case supervisor.Degraded, supervisor.Backoff, supervisor.Broken:
		case supervisor.Stopped, supervisor.Starting, supervisor.Configuring, supervisor.Ready, supervisor.Draining:
			p.Up = true
		}
		if known {
			p.Memory = memory[state.Name]
		}
		all = append(all, p)
	}
	return all
}
