package supervisor

import (
	"context"
	"errors"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Preview asks the plugin that owns the tool what a call would do. It starts
// the plugin if it is not running; from then on the plugin has 5 s to say it.
// When they are over or ctx ends, Preview tells the plugin to stop and returns
// at once with code [tool.Timeout] or [tool.Canceled]. The plugin gets no
// ticket: a preview has no authority.
//
// digest is as in [Supervisor.Run]: a plugin with other tools is not asked, and
// the error says that the call can be made again.
//
// Every error is a [*tool.Error]. It says that the call cannot succeed, if the
// plugin says so, or why there is no preview. A code that only the host may
// use, or that nobody knows, is [tool.Failed] then. A preview without a digest
// is a preview: it binds the call to no state.
func (s *Supervisor) Preview(ctx context.Context, plugin, digest string, call tool.Call) (tool.Preview, error) {
	call.Context.Ticket = nil
	k, i, err := s.take(ctx, plugin, digest, &call)
	if err != nil {
		return tool.Preview{}, err
	}
	defer k.release(i)
	slow := tool.Errorf(tool.Timeout, "the plugin %q did not say within %v what the call would do", plugin, s.timing.preview)
	ctx, cancel := context.WithTimeoutCause(ctx, s.timing.preview, slow)
	defer cancel()
	askCtx, stop := withoutDeadline(ctx)
	defer stop()

	preview, how, err := i.wire.preview(askCtx, call)
	if how == running {
		k.giveUp(ctx, i, call.ID)
	}
	switch {
	case err == nil:
		return preview, nil
	case errors.Is(context.Cause(ctx), slow):
		return tool.Preview{}, slow.WithCause(err)
	}
	if failure, ok := errors.AsType[*tool.Error](err); ok {
		return tool.Preview{}, failure
	}
	return tool.Preview{}, k.explain(ctx, i, question{call: call, sent: how != unsent, preview: true}, err)
}
