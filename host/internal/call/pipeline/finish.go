package pipeline

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/host/internal/call/operation"
	"github.com/toolhost/toolhost/host/internal/decide/policy"
	"github.com/toolhost/toolhost/host/internal/tools/schema"
	"github.com/toolhost/toolhost/internal/excerpt"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds for the texts of an error.
const (
	maxMessage = 8 * tool.KiB
	maxHint    = 2 * tool.KiB
)

const (
	// metaPrefix begins the metadata keys that only the host may set.
	metaPrefix = "toolhost/"
	// metaUntrusted is the key with which a plugin marks its result as untrusted.
	metaUntrusted = "untrusted"
)

// finish records and publishes the end of a call and returns its outcome. Every call ends
// here, except one that joins another operation.
func (p *Pipeline) finish(ctx context.Context, c *call, result tool.Result, err error) operation.Outcome {
	if err != nil {
		result = tool.ErrorResult(p.callerError(c, err))
	}
	outcome := operation.Outcome{ID: c.id, Tool: c.Tool, Result: result, Repairs: c.arguments.Repairs, Duration: time.Since(c.started)}
	if c.entry != nil {
		outcome.Tool = c.entry.Spec.Name
	}
	if c.replayed != "" { // the earlier call was recorded and published
		outcome.ID = c.replayed
		return outcome
	}
	if !c.sent && c.decision.Verdict != policy.Deny {
		c.refund()
	}
	ctx = context.WithoutCancel(ctx) // the caller may have left; the records have their own bounds
	p.recordEnd(ctx, c, outcome)     // before the key answers with the result
	p.endKey(ctx, c, result)
	if c.begun {
		p.cache.empty(c) // concurrent reads may be outdated
	}
	p.publishEnd(c, outcome)
	p.observeEnd(c, outcome)
	p.logEnd(c, outcome)
	return outcome
}

// callerError returns the error that the caller reads. It hides an internal error,
// which it logs under the call's id.
func (p *Pipeline) callerError(c *call, err error) *tool.Error {
	if errors.Is(err, operation.ErrStopping) && (!c.begun || !c.sent) {
		err = refusedByStop(c)
	}
	e := tool.AsError(err)
	if e.Code == tool.Internal {
		p.opts.Logger.Error("call ended with an internal error", "call", c.id, "tool", c.Tool, "error", err)
		e = tool.Errorf(tool.Internal, "internal error in call %s", c.id).WithCause(err).
			WithHint("the host's log has the reason under this id")
	}
	return c.boundError(e)
}

// checkResult returns a valid result within the caller's budget, marked if it is untrusted. It
// checks the size of the structured part before it parses it. Results of the host's own tools
// either fit or have passed this check before, perhaps for another caller.
func (p *Pipeline) checkResult(c *call, result tool.Result) tool.Result {
	if c.entry.OfHost() {
		return p.truncateText(c, c.asText(result), nil)
	}
	result, structured := p.limitStructured(c, c.asText(p.dropForged(c, result)))
	if err := checkOutput(c, result); err != nil {
		p.opts.Logger.Warn("result refused", "call", c.id, "plugin", c.entry.Plugin, "tool", c.entry.Spec.Name,
			"error", err, "cause", err.Unwrap())
		return tool.ErrorResult(err)
	}
	if result.Error != nil {
		result.Error = markError(result, c.boundError(knownCode(result.Error)))
	}
	return p.truncateText(c, c.markStructured(result), structured)
}

// checkOutput checks the parts of a result that programs read.
func checkOutput(c *call, result tool.Result) *tool.Error {
	if result.Structured != nil {
		if err := c.entry.Output.Check(result.Structured); err != nil {
			return err
		}
	}
	return checkFacts(result)
}

// knownCode replaces an unknown code, or one that only the host may use: no plugin may report
// that a person refused.
func knownCode(e *tool.Error) *tool.Error {
	if e.Code.Valid() && !e.Code.HostOnly() {
		return e
	}
	known := *e
	known.Code = tool.Failed
	return &known
}

// boundError returns e with valid texts within their bounds, and within what the caller
// gets in one result.
func (c *call) boundError(e *tool.Error) *tool.Error {
	most := cmp.Or(c.Presentation.MaxOutput, math.MaxInt64)
	message, hint := shorten(e.Message, min(maxMessage, most/8*3)), shorten(e.Hint, min(maxHint, most/8))
	if message == e.Message && hint == e.Hint {
		return e
	}
	bounded := *e
	bounded.Message, bounded.Hint = message, hint
	return &bounded
}

// shorten returns s as valid UTF-8, cut to about most bytes.
func shorten(s string, most tool.ByteSize) string {
	return strings.ToValidUTF8(excerpt.Of(s, int(most)), "\uFFFD")
}

func (p *Pipeline) logEnd(c *call, outcome operation.Outcome) {
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

// program identifies a program whose dropped metadata is logged once.
type program struct{ plugin, digest string }

// dropForged removes the metadata that only the host may set: the key [MetaWhole], and keys
// that begin with "toolhost/". A plugin may declare its result untrusted, but not trusted.
// Dropped keys are logged once for each program.
func (p *Pipeline) dropForged(c *call, result tool.Result) tool.Result {
	var forged []string
	for key, value := range result.Metadata {
		if isForged(key, value) {
			forged = append(forged, key)
		}
	}
	if len(forged) == 0 {
		return result
	}
	facts := maps.Clone(result.Metadata)
	for _, key := range forged {
		delete(facts, key)
	}
	if result.Metadata = facts; len(facts) == 0 {
		result.Metadata = nil
	}
	if _, known := p.forgers.LoadOrStore(program{c.entry.Plugin, c.entry.Digest}, true); !known {
		slices.Sort(forged)
		p.opts.Logger.Warn("dropped metadata of a plugin that only the host may set", "call", c.id,
			"plugin", c.entry.Plugin, "tool", c.entry.Spec.Name, "key", tool.VisibleName(schema.Shorten(forged[0])), "keys", len(forged))
	}
	return result
}

// isForged reports whether a plugin may not set a key to a value. It ignores the case of the
// key, as many JSON readers do.
func isForged(key string, value any) bool {
	switch {
	case strings.EqualFold(key, metaUntrusted):
		return key != metaUntrusted || value != true
	case strings.EqualFold(key, MetaWhole):
		return true
	}
	name, _, hasSlash := strings.Cut(key, "/")
	return hasSlash && strings.EqualFold(name+"/", metaPrefix)
}
