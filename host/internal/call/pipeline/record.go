package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/internal/digest"
	"github.com/toolhost/toolhost/sdk/tool"
)

// causeMark separates the message for the caller from the cause that only the journal keeps.
const causeMark = "; cause: "

// maxToolName bounds the recorded name of an unknown tool.
const maxToolName = 128

// begin spends the approval and records the start of a call that changes something. Both are
// durable before the call runs. If the start cannot be recorded, the call does not run. If the
// policy now asks about the call or denies it, the call starts again and its approval stays
// spent.
func (p *Pipeline) begin(ctx context.Context, c *call) error {
	if err := c.operation.Begin(ctx, !c.entry.OfHost()); err != nil {
		return err
	}
	if p.replaced(c) {
		return fmt.Errorf("%w: %w", errReplaced, errChanging) // its tier may have changed
	}
	if c.approval.ID != "" {
		if err := p.opts.Approvals.Spend(ctx, c.approval.ID, c.id, c.binding); err != nil {
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

// useGrants counts a use of each grant that allows the call.
func (p *Pipeline) useGrants(ctx context.Context, c *call) error {
	if len(c.decision.Grants) == 0 {
		return nil
	}
	err := p.opts.Grants.Use(ctx, c.decision.Grants)
	if err != nil && tool.AsError(err).Code == tool.Conflict { // a grant has ended meanwhile
		return errStale
	}
	return err
}

// endRound records the end of a round after which the call starts again. The call had begun
// but has certainly had no effect. result or err is the reason.
func (p *Pipeline) endRound(ctx context.Context, c *call, result tool.Result, err error) {
	if !c.begun {
		return
	}
	if result.Error == nil {
		result = tool.ErrorResult(p.callerError(c, err))
	}
	p.recordEnd(context.WithoutCancel(ctx), c, operation.Outcome{ID: c.id, Tool: c.Tool, Result: result, Repairs: c.arguments.Repairs, Duration: time.Since(c.started)})
	p.resetKey(context.WithoutCancel(ctx), c)
	c.begun, c.attempts = false, 0
}

// recordEnd records how a call ended. If the call could have changed something, the
// record is durable before recordEnd returns.
func (p *Pipeline) recordEnd(ctx context.Context, c *call, outcome operation.Outcome) {
	r := p.record(c)
	r.Status, r.Bytes, r.Attempts, r.Repairs = outcome.Status(), operation.Size(outcome.Result), c.attempts, len(outcome.Repairs)
	r.Duration = outcome.Duration
	if failure := outcome.Result.Error; failure != nil {
		r.Code, r.Error = string(failure.Code), failure.Message
		if cause := failure.Unwrap(); cause != nil && cause.Error() != failure.Message {
			r.Error += causeMark + cause.Error()
		}
		r.Error = p.opts.Hide(c.Caller.User, r.Error) // the journal hides the other secrets
	}
	r.ResultDigest, r.BrokenClaim = digestOf(outcome.Result), c.brokenClaim
	if err := p.opts.Journal.End(ctx, r, c.tier > tool.ReadOnly); err != nil {
		p.opts.Logger.Error("the end of a call is not in the journal", "call", c.id, "tool", outcome.Tool, "error", err)
	}
}

// record returns the journal's record of a call, with the fields known so far.
func (p *Pipeline) record(c *call) journal.Record {
	r := journal.Record{
		Call: c.id, Tool: shorten(c.Tool, maxToolName), Tier: c.tier,
		User: c.Caller.User, Client: c.Caller.Client, Session: c.Caller.Session, ArgumentsHash: c.hash, Context: c.Context,
		Rule: c.decision.Rule, Where: c.decision.Where, ApprovedBy: string(c.decision.By),
	}
	if c.entry != nil {
		r.Tool, r.Plugin, r.Digest, r.Definition = c.entry.Spec.Name, c.entry.Plugin, c.entry.Digest, c.entry.Definition
		r.Arguments, r.About = p.recordable(c), c.about(func(text string) string { return p.hide(c, text) })
	}
	if c.decision.Verdict != 0 {
		r.Verdict = c.decision.Verdict.String()
	}
	switch {
	case c.approval.ID != "":
		r.ApprovedBy, r.Approval, r.Approver, r.Via = string(policy.ByUser), c.approval.ID, c.approval.Approver(), c.approval.Via
	case c.question.ID != "": // refused or unanswered
		r.Approval, r.Approver, r.Via = c.question.ID, c.question.DecidedBy, c.question.Via
	case len(c.decision.Grants) > 0:
		r.Approval = strings.Join(c.decision.Grants, ",")
	}
	return r
}

// maxAbout bounds the text about a call in the journal.
const maxAbout = 200

// about returns what the call is about, for a list of calls: the command, program, input or address
// in its arguments, or else the file or folder; "" if there is none of these. The first of several
// is named, and a folder such as "." only if nothing else is.
func (c *call) about(redact func(string) string) string {
	values, _ := c.entry.Hidden(c.arguments.Values)
	var words []string
	for _, list := range c.entry.ListsOf(tool.RoleArgv, values) {
		words = append(words, strings.Join(list, " "))
	}
	named := slices.DeleteFunc(slices.Clone(c.names), func(name string) bool { return name == "." && len(c.names) > 1 })
	for _, texts := range [][]string{
		c.entry.ValuesOf(tool.RoleCommand, values), words, c.entry.ValuesOf(tool.RoleScript, values), c.entry.ValuesOf(tool.RoleURL, values), named,
	} {
		texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
		if len(texts) == 0 {
			continue
		}
		about := shorten(redact(texts[0]), maxAbout)
		if more := len(slices.Compact(texts)) - 1; more > 0 {
			about += fmt.Sprintf(" and %d more", more)
		}
		return about
	}
	return ""
}

// hide returns a text of a call without secrets.
func (p *Pipeline) hide(c *call, text string) string {
	return p.opts.Hide(c.Caller.User, p.opts.Redact(text))
}

// recordable returns the arguments without those that the tool declares secret, and without the secrets
// that the user has set.
func (p *Pipeline) recordable(c *call) json.RawMessage {
	raw := c.arguments.Canonical
	if values, ok := c.entry.Hidden(c.arguments.Values); ok {
		raw = schema.Canonical(values)
	}
	clean := p.opts.Hide(c.Caller.User, string(raw))
	switch {
	case clean == string(raw):
		return raw
	case json.Valid([]byte(clean)):
		return json.RawMessage(clean)
	}
	return json.RawMessage(`"(arguments with a secret)"`) // it ended within an escape
}

// digestOf returns the digest of a result, or "" if the result is empty.
func digestOf(result tool.Result) string {
	if len(result.Content) == 0 && result.Structured == nil {
		return ""
	}
	h := sha256.New()
	for _, part := range result.Content {
		_, _ = h.Write(part.Data) // a hash never fails
	}
	_, _ = h.Write(result.Structured)
	return digest.Format(h.Sum(nil))
}
