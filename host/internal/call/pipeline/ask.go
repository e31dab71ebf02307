package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/killswitch"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/sdk/tool"
)

// ask asks a person if the policy requires it. It returns nil if the call may run.
func (p *Pipeline) ask(ctx context.Context, c *call) error {
	if c.decision.Verdict != policy.Ask && c.decision.Verdict != policy.Confirm {
		return nil
	}
	preview, err := p.preview(ctx, c)
	if err != nil {
		return err
	}
	question := p.question(c, preview)
	record, err := p.opts.Approvals.Ask(ctx, question)
	if err != nil {
		return err
	}
	c.binding, c.preview, c.question = question.Binding(), preview, record
	c.operation.SetApproval(record.ID)
	if record.State == approval.Open {
		if record, err = p.await(ctx, c, record); err != nil {
			return err
		}
	}
	c.question = record
	if err := answered(record); err != nil {
		return err
	}
	c.approval = record
	return nil
}

// releaseApproval releases the question of a round when the round ends. If the caller gave up,
// it cancels the question. Otherwise the same call may later use the question and its answer.
// It does not change a spent approval.
func (p *Pipeline) releaseApproval(ctx context.Context, c *call) {
	cause := context.Cause(ctx)
	switch id := c.question.ID; {
	case id == "":
	case cause == nil || errors.Is(cause, operation.ErrStopping) || errors.Is(cause, killswitch.ErrStopped):
		p.opts.Approvals.Release(id) // a stop rejects it
	default:
		if err := p.opts.Approvals.Cancel(context.WithoutCancel(ctx), id); err != nil {
			p.opts.Logger.Error("a question whose caller gave up stays open", "approval", id, "error", err)
		}
	}
}

// noPreview is what an approver reads if the preview failed. The plugin's own message may
// contain parts of sensitive files that no person has allowed yet.
const noPreview = "the plugin could not say what would happen: the call will probably fail"

// preview asks the plugin what the call would do; nil if the tool has no previews. If the call
// cannot succeed, preview returns the plugin's error, and no person is asked. A call that
// names sensitive files is the exception: the plugin has read them, and the caller must not
// see its message before a person allows the call.
func (p *Pipeline) preview(ctx context.Context, c *call) (*tool.Preview, error) {
	c.noPreview = ""
	if !c.entry.Spec.HasPreview {
		return nil, nil
	}
	leave, err := p.enter(ctx, c, p.boundOfUser(c), p.boundOfPlugin(c))
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := p.refuseStopped(c); err != nil {
		return nil, err
	}
	preview, err := p.opts.Runner.Preview(ctx, c.entry.Plugin, c.entry.Digest, p.previewCall(c))
	if err == nil {
		return &preview, nil
	}
	replaced, withheld := ctx.Err() == nil && p.replaced(c), len(c.sensitive) > 0
	switch {
	case replaced && withheld:
		return nil, fmt.Errorf("%w: %w", errReplaced, errChanging)
	case replaced:
		return nil, fmt.Errorf("%w: %w", errReplaced, err)
	case !withheld:
		return nil, endOf(ctx, err)
	case ctx.Err() != nil:
		return nil, operation.Cause(ctx)
	}
	p.opts.Logger.Info("approval without a preview, since the call names sensitive files and its preview failed", "call", c.id, "code", tool.AsError(err).Code)
	c.noPreview = noPreview
	return nil, nil
}

// question returns the question for the approver.
func (p *Pipeline) question(c *call, preview *tool.Preview) approval.Question {
	_, hidden := c.entry.Hidden(c.arguments.Values)
	return approval.Question{
		Call: c.id, User: c.Caller.User, Client: c.Caller.Client, Session: c.Caller.Session,
		Plugin: c.entry.Plugin, Tool: c.entry.Spec.Name, Digest: c.entry.Digest, Definition: c.entry.Definition, Tier: c.tier, Description: c.entry.Spec.Description,
		Verdict: c.decision.Verdict, Rule: c.decision.Rule, Where: c.decision.Where,
		Arguments: c.arguments.Canonical, Shown: p.recordable(c),
		Preview: preview, NoPreview: c.noPreview, PolicyRevision: p.current(c).Policy.Revision(), Context: c.Context,
		Runs: runs(c, hidden), Sensitive: c.sensitive,
		Approvers: c.decision.Approvers, Standing: c.decision.Standing && !hidden, NoGrant: noGrant(c, hidden), Subject: c.grantable.Subject,
		Given: c.grantable.Basis, Paused: c.grantable.Paused,
	}
}

// noGrant returns why no grant can cover a call, or "" if one can.
func noGrant(c *call, hidden bool) string {
	if hidden && c.decision.NoGrant == "" {
		return "the call has secret arguments, which are not shown"
	}
	return c.decision.NoGrant
}

// Bounds for the commands that an approver sees, and for the text of each.
const (
	maxRuns     = 100
	maxRunsText = 1000
)

// runs lists the programs that the shell commands of a call would run; nil if the
// commands may contain hidden arguments.
func runs(c *call, hidden bool) []string {
	if hidden {
		return nil
	}
	var lines []string
	for _, read := range c.commands {
		segments := read.Line.Segments
		if len(segments) > maxRuns { // the riskiest come first
			segments = slices.SortedStableFunc(slices.Values(segments), func(a, b command.Segment) int { return cmp.Compare(b.Risk, a.Risk) })
		}
		for _, problem := range read.Line.Problems {
			lines = append(lines, problem.String())
		}
		for _, s := range segments[:min(len(segments), maxRuns)] {
			lines = append(lines, shorten(s.String(), maxRunsText))
		}
		if more := len(segments) - maxRuns; more > 0 {
			lines = append(lines, fmt.Sprintf("and %d commands more", more))
		}
	}
	return lines
}

// await waits until a person decides about the record, or ctx ends.
func (p *Pipeline) await(ctx context.Context, c *call, record approval.Record) (approval.Record, error) {
	c.operation.AwaitApproval(record.ID)
	p.publishState(c, event.AwaitingApproval)
	defer c.operation.Resume()
	p.remind(c)
	decided, err := p.opts.Approvals.Wait(ctx, record.ID)
	switch {
	case err == nil:
		return decided, nil
	case ctx.Err() == nil:
		return record, err
	case errors.Is(context.Cause(ctx), operation.ErrStopping):
		return record, waitsForNextHost(record.ID)
	}
	return record, operation.Cause(ctx)
}

// RejectedByUser is the message of a call that a person rejected. Its hint is what the person said.
const RejectedByUser = "User rejected the operation"

// answered returns nil if a person approved the call, or the error for the caller.
func answered(r approval.Record) error {
	switch r.State {
	case approval.Approved:
		return nil
	case approval.Rejected:
		refused := tool.Errorf(tool.Rejected, RejectedByUser)
		if r.Message != "" {
			refused = refused.WithHint("%s", r.Message)
		}
		return refused
	case approval.Expired:
		return tool.Errorf(tool.Rejected, "no one approved the operation in time, which counts as a refusal").
			WithHint("ask the user whether it should be done, then call again")
	case approval.Canceled, approval.Spent, approval.Open:
	}
	return tool.Errorf(tool.Conflict, "the approval %s is %s and cannot let this call run", r.ID, r.State).
		WithHint("make the call again: a person is asked again")
}

// stillAllowed decides again whether a call may run, since the policy or the
// grants may have changed. An approval is valid unless the policy has become
// stricter.
func (p *Pipeline) stillAllowed(c *call) bool {
	if c.tier == tool.ReadOnly && c.approval.ID == "" {
		return true
	}
	decision := p.decision(c)
	if c.approval.ID != "" {
		return decision.Verdict <= c.approval.Verdict && decision.Approvers <= max(c.approval.Approvers, 1)
	}
	c.decision = decision // other grants may apply
	return decision.Verdict == policy.Allow
}

// stale reports whether a plugin has refused an approved call because the state
// differs from the one that its preview showed.
func (p *Pipeline) stale(ctx context.Context, c *call, result tool.Result) bool {
	if result.Error == nil || result.Error.Code != tool.Conflict || c.preview == nil || len(c.preview.Digest) == 0 {
		return false
	}
	// The call still holds its slot at the plugin.
	preview, err := p.opts.Runner.Preview(ctx, c.entry.Plugin, c.entry.Digest, p.previewCall(c))
	return err == nil && !bytes.Equal(preview.Digest, c.preview.Digest)
}
