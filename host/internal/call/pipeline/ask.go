package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/approval"
	"github.com/toolhost/toolhost/host/internal/decide/command"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/sdk/tool"
)

// remindEvery is how often a caller is told that its call waits for a person.
const remindEvery = 10 * time.Second

// ask lets a person decide, if the policy wants one to. It returns nil if the
// call may run.
func (p *Pipeline) ask(ctx context.Context, c *call) error {
	if c.decision.Verdict != policy.Ask && c.decision.Verdict != policy.Confirm {
		return nil
	}
	preview, err := p.preview(ctx, c)
	if err != nil {
		return err
	}
	question := p.question(c, preview)
	record, err := p.opts.Desk.Ask(ctx, question)
	if err != nil {
		return err
	}
	c.binding, c.preview, c.question = question.Binding(), preview, record
	c.flight.asks(record.ID)
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

// letGo gives up the question that a round of a call has asked, at the end of
// the round: if its caller gave up, nobody needs the answer; else the same call
// made again may take what is left of it. One that is spent is left alone.
func (p *Pipeline) letGo(ctx context.Context, c *call) {
	cause := context.Cause(ctx)
	switch id := c.question.ID; {
	case id == "":
	case cause == nil || errors.Is(cause, ErrStopping):
		p.opts.Desk.Release(id)
	default:
		if err := p.opts.Desk.Cancel(context.WithoutCancel(ctx), id); err != nil {
			p.opts.Logger.Error("a question that nobody needs answered stays open", "approval", id, "error", err)
		}
	}
}

// noPreview is what an approver reads of a call whose preview failed. The plugin's own
// words may hold what a person has not allowed yet.
const noPreview = "the plugin could not say what would happen: the call will probably fail"

// preview asks the plugin what the call would do; nil if its tool cannot tell.
// The error is the plugin's if the call cannot succeed: nobody needs to be
// asked about it. A call that names sensitive files is asked about all the same, since the
// plugin has read them: the caller gets none of its words before a person allows the call.
func (p *Pipeline) preview(ctx context.Context, c *call) (*tool.Preview, error) {
	c.noPreview = ""
	if !c.entry.Spec.HasPreview {
		return nil, nil
	}
	place := slotKey{plugin: c.entry.Plugin, size: p.opts.PluginConcurrency}
	if err := p.enter(ctx, c, place, p.opts.MaxWait); err != nil {
		return nil, err
	}
	preview, err := p.opts.Runner.Preview(ctx, c.entry.Plugin, c.entry.Digest, p.toolCall(c))
	p.slots.leave(place)
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
		return nil, causeOf(ctx)
	}
	p.opts.Logger.Info("a call that names sensitive files is asked about without a preview", "call", c.id, "code", tool.AsError(err).Code)
	c.noPreview = noPreview
	return nil, nil
}

// question is what a person is asked.
func (p *Pipeline) question(c *call, preview *tool.Preview) approval.Question {
	_, hidden := c.entry.Hidden(c.arguments.Values)
	return approval.Question{
		Call: c.id, User: c.Caller.User, Client: c.Caller.Client, Session: c.Caller.Session,
		Plugin: c.entry.Plugin, Tool: c.entry.Spec.Name, Digest: c.entry.Digest, Tier: c.tier,
		Verdict: c.decision.Verdict, Rule: c.decision.Rule, Where: c.decision.Where,
		Arguments: c.arguments.Canonical, Shown: p.recordable(c),
		Preview: preview, NoPreview: c.noPreview, PolicyRevision: p.rules().Revision(), Context: c.Context,
		Runs: runs(c, hidden), Sensitive: c.sensitive,
		Standing: c.decision.Standing && !hidden, NoGrant: noGrant(c, hidden), Subject: c.grantable.Subject,
		Given: c.grantable.Basis, Paused: c.grantable.Paused,
	}
}

// noGrant says why no grant can be given for a call.
func noGrant(c *call, hidden bool) string {
	if hidden && c.decision.NoGrant == "" {
		return "the call has secret arguments, which are not shown"
	}
	return c.decision.NoGrant
}

// maxRuns bounds the commands that are shown.
const (
	maxRuns     = 100
	maxRunsText = 1000
)

// runs says what the shell commands of a call would run, unless that may hold what is
// hidden.
func runs(c *call, hidden bool) []string {
	if hidden {
		return nil
	}
	var lines []string
	for _, read := range c.commands {
		segments := read.Line.Segments
		if len(segments) > maxRuns { // those first of which there is most to fear
			segments = slices.SortedStableFunc(slices.Values(segments), func(a, b command.Segment) int { return cmp.Compare(b.Risk, a.Risk) })
		}
		for _, problem := range read.Line.Problems {
			lines = append(lines, problem.String())
		}
		for _, s := range segments[:min(len(segments), maxRuns)] {
			lines = append(lines, boundText(s.String(), maxRunsText))
		}
		if more := len(segments) - maxRuns; more > 0 {
			lines = append(lines, fmt.Sprintf("and %d commands more", more))
		}
	}
	return lines
}

// await waits until the record is decided, or ctx ends.
func (p *Pipeline) await(ctx context.Context, c *call, record approval.Record) (approval.Record, error) {
	c.flight.await(record.ID)
	p.publishState(c, event.AwaitingApproval)
	defer c.flight.resume()
	reminding, stop := context.WithCancel(ctx)
	var reminder sync.WaitGroup
	reminder.Go(func() { p.remind(reminding, c, record.ID) }) // ends with reminding
	defer reminder.Wait()                                     // nothing is said after the tool's own reports
	defer stop()

	decided, err := p.opts.Desk.Wait(ctx, record.ID)
	switch {
	case err == nil:
		return decided, nil
	case ctx.Err() == nil:
		return record, err
	case errors.Is(context.Cause(ctx), ErrStopping):
		return record, waitsForNextHost(record.ID)
	}
	return record, causeOf(ctx)
}

// remind tells the caller from time to time what its call waits for. The
// numbers stay below any that a tool will report.
func (p *Pipeline) remind(ctx context.Context, c *call, id string) {
	ticker := time.NewTicker(remindEvery)
	defer ticker.Stop()
	sink := c.flight.toSink()
	for n := 0; ; n++ {
		sink.Progress(tool.Progress{Progress: float64(n) * 1e-6, Message: "waiting for a person to approve " + id})
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// answered returns nil for a call that a person approved, else what its caller
// reads.
func answered(r approval.Record) error {
	switch r.State {
	case approval.Approved:
		return nil
	case approval.Rejected:
		refused := tool.Errorf(tool.Rejected, "User rejected the operation")
		if r.Message != "" {
			refused = refused.WithHint("%s", r.Message)
		}
		return refused
	case approval.Expired:
		return tool.Errorf(tool.Rejected, "nobody approved the operation in time, which counts as a refusal").
			WithHint("ask the user whether it should be done, then call again")
	case approval.Canceled, approval.Spent, approval.Open:
	}
	return tool.Errorf(tool.Conflict, "the approval %s is %s and cannot let this call run", r.ID, r.State).
		WithHint("call again to ask anew")
}

// stillAllowed decides again whether a call may run, since the policy or the
// grants may be others by now. An approval holds unless the policy became
// stricter than it was.
func (p *Pipeline) stillAllowed(c *call) bool {
	if c.tier == tool.ReadOnly && c.approval.ID == "" {
		return true
	}
	decision := p.judge(c)
	if c.approval.ID != "" {
		return decision.Verdict <= c.approval.Verdict
	}
	c.decision = decision // perhaps by other grants
	return decision.Verdict == policy.Allow
}

// stale reports whether a plugin has refused an approved call because the
// world is no longer the one that its preview showed.
func (p *Pipeline) stale(ctx context.Context, c *call, result tool.Result) bool {
	if result.Error == nil || result.Error.Code != tool.Conflict || c.preview == nil || len(c.preview.Digest) == 0 {
		return false
	}
	// The call has its place with the plugin still.
	preview, err := p.opts.Runner.Preview(ctx, c.entry.Plugin, c.entry.Digest, p.toolCall(c))
	return err == nil && !bytes.Equal(preview.Digest, c.preview.Digest)
}
