package pipeline

import (
	"strings"

	"github.com/toolhost/toolhost/host/internal/state/event"
	"github.com/toolhost/toolhost/sdk/tool"
)

// A plugin with split tiers runs read_only calls in a process that can change nothing. The kernel
// does not report refused writes, so the tool's own error is the only sign of a broken claim. A tool
// that hides the error fools nobody but its caller: it has changed nothing.

// refusedWrites are texts of errors for refused writes, in lower case, the surest first: a read may
// be refused with a permission too.
func refusedWrites() []string {
	return []string{"read-only file system", "erofs", "permission denied", "eacces", "operation not permitted", "eperm"}
}

// maxSigns bounds the part of a failure in which signs are looked for, in bytes.
const maxSigns = 64 << 10

// noteBrokenClaim adds to the failure of a call that claims to be read_only what may be its cause,
// and tells the administrator. It is the only place that learns of broken claims.
func (p *Pipeline) noteBrokenClaim(c *call, result tool.Result) tool.Result {
	if !c.entry.SplitTiers || c.tier != tool.ReadOnly || result.Error == nil {
		return result
	}
	sign := c.signOfWrite(result)
	if sign == "" {
		return result
	}
	c.brokenClaim = sign
	p.opts.Logger.Warn("a tool that claims to be read_only may have tried to change something", "call", c.id, "plugin", c.entry.Plugin, "tool", c.entry.Spec.Name, "sign", sign)
	p.opts.Events.Publish("", event.BrokenClaim{ID: c.id, Tool: c.entry.Spec.Name, Plugin: c.entry.Plugin, Sign: sign})
	p.opts.BrokenClaim(c.entry.Plugin, c.entry.Spec.Name, sign)
	hint := c.entry.Spec.Name + " claims to be read_only, so it ran in a process that can change nothing; " +
		"if it was to change something, this call cannot work, and the administrator must change the tool's tier"
	if result.Error.Hint != "" {
		hint = result.Error.Hint + "; " + hint
	}
	result.Error = result.Error.WithHint("%s", hint)
	return result
}

// signOfWrite returns the surest sign of a refused write in a failure, or "". Words of the arguments
// are no sign: they may be the name of a file, which the caller chooses.
func (c *call) signOfWrite(result tool.Result) string {
	failure := result.Error.Message + "\n" + result.Text()
	failure = strings.ToLower(failure[:min(len(failure), maxSigns)])
	arguments := strings.ToLower(string(c.arguments.Canonical))
	for _, sign := range refusedWrites() {
		if strings.Contains(failure, sign) && !strings.Contains(arguments, sign) {
			return sign
		}
	}
	return ""
}
