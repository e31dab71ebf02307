package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/sdk/tool"
)

// causeMark stands between what a caller reads of an error and what only the
// journal has.
const causeMark = "; cause: "

// maxToolName bounds the name that is recorded of a tool that does not exist.
const maxToolName = 128

// begin uses up the approval and records the start of a call that changes
// something, each durable before anything runs. A call whose start cannot be
// recorded does not run, and one that the policy would by now ask about or deny
// begins anew, its approval used up.
func (p *Pipeline) begin(ctx context.Context, c *call) error {
	if err := c.flight.begin(ctx); err != nil {
		return err
	}
	if p.replaced(c) {
		return fmt.Errorf("%w: %w", errReplaced, errChanging) // it may have another tier by now
	}
	if c.approval.ID != "" {
		if err := p.opts.Desk.Spend(ctx, c.approval.ID, c.id, c.binding); err != nil {
			return err
		}
	}
	if !p.stillAllowed(c) {
		return errStale
	}
	if err := p.useGrants(ctx, c); err != nil {
		return err
	}
	if c.tier != tool.ReadOnly {
		if err := p.startKey(ctx, c); err != nil {
			return err
		}
		if err := p.opts.Journal.Start(ctx, p.record(c)); err != nil {
			return notWritten(ctx, "the call", err)
		}
		c.begun = true
		p.cache.empty(c)
	}
	p.publishState(c, event.ToolExecution)
	return nil
}

// useGrants counts the grants by which a call runs.
func (p *Pipeline) useGrants(ctx context.Context, c *call) error {
	if len(c.decision.Grants) == 0 {
		return nil
	}
	err := p.opts.Grants.Use(ctx, c.decision.Grants)
	if err != nil && tool.AsError(err).Code == tool.Conflict { // one has ended meanwhile
		return errStale
	}
	return err
}

// endRound records the end of a round of a call that had begun, has certainly
// had no effect, and begins anew: result or err says why.
func (p *Pipeline) endRound(ctx context.Context, c *call, result tool.Result, err error) {
	if !c.begun {
		return
	}
	if result.Error == nil {
		result = tool.ErrorResult(p.callerError(c, err))
	}
	p.recordEnd(context.WithoutCancel(ctx), c, Outcome{ID: c.id, Tool: c.Tool, Result: result, Repairs: c.arguments.Repairs, Duration: time.Since(c.started)})
	p.readmitKey(context.WithoutCancel(ctx), c)
	c.begun, c.attempts = false, 0
}

// recordEnd records how a call ended. That of a call which could have changed
// something is durable before its caller knows it.
func (p *Pipeline) recordEnd(ctx context.Context, c *call, outcome Outcome) {
	r := p.record(c)
	r.Status, r.Bytes, r.Attempts, r.Repairs = outcome.status(), size(outcome.Result), c.attempts, len(outcome.Repairs)
	r.Duration = outcome.Duration
	if failure := outcome.Result.Error; failure != nil {
		r.Code, r.Error = string(failure.Code), failure.Message
		if cause := failure.Unwrap(); cause != nil && cause.Error() != failure.Message {
			r.Error += causeMark + cause.Error()
		}
	}
	r.ResultDigest = digestOf(outcome.Result)
	if err := p.opts.Journal.End(ctx, r, c.tier > tool.ReadOnly); err != nil {
		p.opts.Logger.Error("the end of a call is not in the journal", "call", c.id, "tool", outcome.Tool, "error", err)
	}
}

// record is what the journal keeps of a call, as far as it is known.
func (p *Pipeline) record(c *call) journal.Record {
	r := journal.Record{
		Call: c.id, Tool: boundText(c.Tool, maxToolName), Tier: c.tier,
		User: c.Caller.User, Client: c.Caller.Client, Session: c.Caller.Session, ArgumentsHash: c.hash,
		Rule: c.decision.Rule, Where: c.decision.Where, ApprovedBy: string(c.decision.By),
	}
	if c.entry != nil {
		r.Tool, r.Plugin, r.Digest = c.entry.Spec.Name, c.entry.Plugin, c.entry.Digest
		r.Arguments = p.recordable(c)
	}
	if c.decision.Verdict != 0 {
		r.Verdict = c.decision.Verdict.String()
	}
	switch {
	case c.approval.ID != "":
		r.ApprovedBy, r.Approval, r.Approver, r.Via = string(policy.ByUser), c.approval.ID, c.approval.DecidedBy, c.approval.Via
	case c.question.ID != "": // refused, or not answered
		r.Approval, r.Approver, r.Via = c.question.ID, c.question.DecidedBy, c.question.Via
	case len(c.decision.Grants) > 0:
		r.Approval = strings.Join(c.decision.Grants, ",")
	}
	return r
}

// recordable is the arguments without those that the tool declares secret.
func (p *Pipeline) recordable(c *call) json.RawMessage {
	if values, ok := c.entry.Hidden(c.arguments.Values); ok {
		return schema.Canonical(values)
	}
	return c.arguments.Canonical
}

// digest is how a digest is written everywhere.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// digestOf identifies what a caller got; "" if it got nothing.
func digestOf(result tool.Result) string {
	if len(result.Content) == 0 && result.Structured == nil {
		return ""
	}
	h := sha256.New()
	for _, part := range result.Content {
		_, _ = h.Write(part.Data) // a hash never fails
	}
	_, _ = h.Write(result.Structured)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func size(result tool.Result) int64 {
	n := len(result.Structured)
	for _, part := range result.Content {
		n += len(part.Data)
	}
	return int64(n)
}
