package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/toolhost/toolhost/host/internal/auth"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
)

// Bounds for the parts of a stop that wait. What a stop forbids is forbidden before any of them.
const (
	// maxEnding is how long Stop waits for calls and processes to end. They are told to end at once.
	maxEnding = 10 * time.Second
	// maxRecording is how long Stop and Resume wait for the disk.
	maxRecording = 10 * time.Second
)

// refuseStopped returns the error of a call that a stop covers, or nil. The steps ask first, so that
// no step is taken for a stopped call, and again each time before the plugin gets a call or the
// request for a preview. The host's own tools are never stopped: they start nothing, and tell a
// model what became of its calls.
func (p *Pipeline) refuseStopped(c *call) error {
	if c.entry.OfHost() {
		return nil
	}
	if stop, ok := p.opts.Stops.Covering(c.Caller.User, c.entry.Plugin); ok {
		return stop.Refusal()
	}
	return nil
}

// Killer is a [Runner] that runs the processes of plugins.
type Killer interface {
	// Kill kills the processes that a stop covers, and the starts in progress. It returns when they
	// have ended, or with ctx, and reports how many have ended and how many have not. user is "" for a
	// process of all users.
	Kill(ctx context.Context, covers func(user, plugin string) bool) (killed, left int)
	// Revive starts the plugins that should run but could not while they were stopped. It returns at
	// once.
	Revive(ctx context.Context)
}

// StopRequest is an admin's order to stop calls.
type StopRequest struct {
	killswitch.Scope

	// Reason is shown to people and models; may be "".
	Reason string
	// By is the admin, and Via the channel of the request.
	By  auth.Caller
	Via string
}

// Stopped is what a stop has done.
type Stopped struct {
	killswitch.Stop

	// Again reports that the stop was in force before; the rest is what was left to do.
	Again bool `json:"again,omitempty"`
	// CanceledCalls, KilledProcesses and RejectedApprovals count what was in progress.
	CanceledCalls     int `json:"canceled_calls"`
	KilledProcesses   int `json:"killed_processes"`
	RejectedApprovals int `json:"rejected_approvals"`
	// Problems are what could not be done. The stop is in force nevertheless.
	Problems []string `json:"problems,omitempty"`
}

// Stop stops calls until [Pipeline.Resume]: it forbids new ones, cancels those in progress, kills the
// processes of plugins, rejects the approvals that calls wait for, and records all that. After Stop
// has returned, no plugin receives a call that the stop covers, unless Problems says that calls have
// not ended. The end of ctx does not end Stop. An error means that nothing was stopped.
func (p *Pipeline) Stop(ctx context.Context, req StopRequest) (Stopped, error) {
	stop, fresh, err := p.opts.Stops.Set(req.Scope, req.Reason, req.By.User)
	if err != nil {
		return Stopped{}, err
	}
	ctx = context.WithoutCancel(ctx)
	done := Stopped{Stop: stop, Again: !fresh}
	// A call that the registry does not know yet asks refuseStopped later than this.
	var ended func(context.Context) int
	done.CanceledCalls, ended = p.operations.Stop(func(user, plugin string) bool {
		return plugin != catalog.HostPlugin && stop.Covers(user, plugin)
	}, stop.Refusal())
	done.endAll(ctx, p, ended)
	p.recordStop(ctx, &done, req)
	return done, nil
}

// endAll waits for the end of the canceled calls and kills the processes.
func (d *Stopped) endAll(ctx context.Context, p *Pipeline, ended func(context.Context) int) {
	ctx, cancel := context.WithTimeout(ctx, maxEnding)
	defer cancel()
	if killer, ok := p.opts.Runner.(Killer); ok {
		var left int
		if d.KilledProcesses, left = killer.Kill(ctx, d.Covers); left > 0 {
			d.Problems = append(d.Problems, fmt.Sprintf("%d processes have not ended although they were killed", left))
		}
	}
	if left := ended(ctx); left > 0 {
		d.Problems = append(d.Problems, fmt.Sprintf("%d calls have not ended although they were canceled", left))
	}
}

// recordStop writes a stop that is in force, rejects the approvals of its calls, and tells of it.
func (p *Pipeline) recordStop(ctx context.Context, d *Stopped, req StopRequest) {
	ctx, cancel := context.WithTimeout(ctx, maxRecording)
	defer cancel()
	problem := func(what string, err error) {
		p.opts.Logger.Error("a stop is in force, but not all of it is done", "stop", d.ID, "problem", what, "error", err)
		d.Problems = append(d.Problems, what)
	}
	if err := p.opts.Stops.Save(ctx, d.ID); err != nil {
		problem("the stop could not be written to the disk: it is in force until the host ends; run the command again when the disk can be written", err)
	}
	var err error
	d.RejectedApprovals, err = p.opts.Approvals.RejectAll(ctx, approval.Rejection{By: req.By.User, Via: approval.ViaStop, Message: d.Refusal().Message}, d.Covers)
	if err != nil {
		problem("approvals of stopped calls could not be rejected: they can be decided after resume", err)
	}
	if d.Again {
		return
	}
	p.opts.Logger.Warn("calls are stopped", "stop", d.ID, "calls", d.Scope.String(), "by", d.By, "reason", d.Reason)
	what := fmt.Sprintf("%s are stopped (%s)", d.Scope, d.ID)
	if d.Reason != "" {
		what += ": " + d.Reason
	}
	what += fmt.Sprintf("; canceled calls: %d, killed processes: %d, rejected approvals: %d", d.CanceledCalls, d.KilledProcesses, d.RejectedApprovals)
	if err := p.opts.Journal.ChangeBy(ctx, req.By.User, req.Via, what); err != nil {
		problem("the journal cannot record the stop now", err)
	}
	p.publishStop(d.Stop, event.Stopped, req.By.User)
}

// Resume ends a stop, durably, and returns it. If no stop has the id, the error is [tool.NotFound];
// after any other error the stop is still in force.
func (p *Pipeline) Resume(ctx context.Context, id string, by auth.Caller, via string) (killswitch.Stop, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxRecording)
	defer cancel()
	stop, err := p.opts.Stops.Resume(ctx, id)
	if err != nil {
		return killswitch.Stop{}, err
	}
	if killer, ok := p.opts.Runner.(Killer); ok {
		killer.Revive(ctx)
	}
	p.opts.Logger.Warn("stopped calls may run again", "stop", stop.ID, "calls", stop.Scope.String(), "by", by.User)
	if err := p.opts.Journal.ChangeBy(ctx, by.User, via, fmt.Sprintf("%s are resumed (%s)", stop.Scope, stop.ID)); err != nil {
		p.opts.Logger.Error("the journal cannot record that a stop has ended", "stop", stop.ID, "error", err)
	}
	p.publishStop(stop, event.Resumed, by.User)
	return stop, nil
}

// Stops returns the stops in force, the oldest first.
func (p *Pipeline) Stops() []killswitch.Stop { return p.opts.Stops.List() }

// publishStop publishes that a stop has begun or ended.
func (p *Pipeline) publishStop(stop killswitch.Stop, state, by string) {
	p.opts.Events.Publish(stop.User, event.CallsStopped{
		ID: stop.ID, State: state, User: stop.User, Plugin: stop.Plugin, Reason: stop.Reason, By: by, Calls: stop.Scope.String(),
	})
}
