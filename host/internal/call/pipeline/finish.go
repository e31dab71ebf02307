package pipeline

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of what an error may say.
const (
	maxMessage = 8 * tool.KiB
	maxHint    = 2 * tool.KiB
)

// finish makes the outcome of a call. It runs on every path, so that no call
// ends without it.
func (p *Pipeline) finish(ctx context.Context, c *call, result tool.Result, err error) Outcome {
	if err != nil {
		result = tool.ErrorResult(p.callerError(c, err))
	}
	outcome := Outcome{ID: c.id, Tool: c.Tool, Result: result, Repairs: c.arguments.Repairs, Duration: time.Since(c.started)}
	if c.entry != nil {
		outcome.Tool = c.entry.Spec.Name
	}
	if c.replay != "" { // the earlier call has its record, and whoever watches knows of it
		outcome.ID = c.replay
		return outcome
	}
	if !c.sent && c.decision.Verdict != policy.Deny {
		c.refund()
	}
	ctx = context.WithoutCancel(ctx) // the caller may have gone; what records has bounds of its own
	p.recordEnd(ctx, c, outcome)     // first: what a key answers with is in the journal
	p.endKey(ctx, c, result)
	if c.begun {
		p.cache.empty(c) // of what was read while it ran
	}
	p.publishEnd(c, outcome)
	p.logEnd(c, outcome)
	return outcome
}

// callerError returns what the caller may know of an error. What it may not
// know goes to the log, under the call's id.
func (p *Pipeline) callerError(c *call, err error) *tool.Error {
	if errors.Is(err, ErrStopping) && (!c.begun || !c.sent) {
		err = refusedByStop(c)
	}
	e := tool.AsError(err)
	if e.Code == tool.Internal {
		p.opts.Logger.Error("call ended with an internal error", "call", c.id, "tool", c.Tool, "error", err)
		e = tool.Errorf(tool.Internal, "internal error in call %s", c.id).WithCause(err).
			WithHint("the host's log says more under this id")
	}
	return boundError(e)
}

// checkResult makes a result fit for the caller: valid, and within its budget.
// What is parsed has passed the budget before. What the host's own tools give
// is made to fit, or the result of a call that has passed here.
func (p *Pipeline) checkResult(c *call, result tool.Result) tool.Result {
	if c.entry.OfHost() {
		return result
	}
	result, structured := p.fitStructured(c, p.dropForged(c, result))
	if err := checkOutput(c, result); err != nil {
		p.opts.Logger.Warn("result refused", "call", c.id, "plugin", c.entry.Plugin, "tool", c.entry.Spec.Name,
			"error", err, "cause", err.Unwrap())
		return tool.ErrorResult(err)
	}
	if result.Error != nil {
		result.Error = boundError(knownCode(result.Error))
	}
	return p.fitText(c, result, structured)
}

// checkOutput checks the parts of a result that a program reads.
func checkOutput(c *call, result tool.Result) *tool.Error {
	if result.Structured != nil {
		if err := c.entry.Output.Check(result.Structured); err != nil {
			return err
		}
	}
	return checkFacts(result)
}

// knownCode replaces a code that a plugin made up, or that only the host may
// use: no plugin can say that a person refused.
func knownCode(e *tool.Error) *tool.Error {
	if e.Code.Valid() && !e.Code.HostOnly() {
		return e
	}
	known := *e
	known.Code = tool.Failed
	return &known
}

// boundError returns e with texts that are valid and not longer than they may
// be.
func boundError(e *tool.Error) *tool.Error {
	message, hint := boundText(e.Message, maxMessage), boundText(e.Hint, maxHint)
	if message == e.Message && hint == e.Hint {
		return e
	}
	bounded := *e
	bounded.Message, bounded.Hint = message, hint
	return &bounded
}

// boundText returns s as valid text of not much more than most bytes.
func boundText(s string, most tool.ByteSize) string {
	if len(s) <= int(most) && utf8.ValidString(s) {
		return s
	}
	if len(s) > int(most) {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func (p *Pipeline) logEnd(c *call, outcome Outcome) {
	if !p.opts.Logger.IsDebug() {
		return
	}
	status := "success"
	if outcome.Result.Error != nil {
		status = string(outcome.Result.Error.Code)
	}
	p.opts.Logger.Debug("call ended", "call", c.id, "tool", outcome.Tool, "user", c.Caller.User,
		"status", status, "duration", outcome.Duration, "repairs", len(outcome.Repairs))
}
