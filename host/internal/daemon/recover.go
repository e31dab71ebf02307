package daemon

import (
	"context"
	"fmt"

	"github.com/toolhost/toolhost/host/internal/state/journal"
	"github.com/toolhost/toolhost/sdk/tool"
)

// endUnfinished records the end of calls that had begun when the last host was
// killed. Whether they had their effect is not known, and they are not made
// again.
func (d *Daemon) endUnfinished(ctx context.Context) error {
	left, err := d.parts.journal.Unfinished(ctx)
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	for _, start := range left {
		end := journal.Record{
			Call: start.Call, Tool: start.Tool, Plugin: start.Plugin, Digest: start.Digest, Tier: start.Tier,
			User: start.User, Client: start.Client, Session: start.Session, Arguments: start.Arguments, ArgumentsHash: start.ArgumentsHash,
			Verdict: start.Verdict, Rule: start.Rule, Where: start.Where, ApprovedBy: start.ApprovedBy, Approval: start.Approval, Approver: start.Approver, Via: start.Via,
			Status: "error", Code: string(tool.UnknownOutcome), Error: "the host stopped under the call",
		}
		if err := d.parts.journal.End(ctx, end, true); err != nil {
			return fmt.Errorf("record how calls of the last host ended: %w", err)
		}
		d.opts.Logger.Warn("the last host stopped under a call: its outcome is unknown", "call", start.Call, "tool", start.Tool, "user", start.User)
	}
	return nil
}
