package sdk

import (
	"context"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of one part of a command.
const (
	maxPartWords = 16_000
	maxPartBytes = 1 << 20
)

// CommandTree returns the argument of [tool.RoleCommand] as a syntax tree, in the
// typed JSON of mvdan.cc/sh, or nil. If it is not nil, the tool must execute the tree,
// call [Call.MayRun] for each part, and never pass the text of the argument to a
// shell. Only tools with CommandTree in their [tool.Spec] get a tree.
func (c *Call) CommandTree() json.RawMessage { return c.data.CommandTree }

// MayRun asks the host whether one part of a command tree may run, right before the
// part is executed. It returns nil if the part may run. It blocks until the host
// answers, which asks no person, or ctx ends. An error is of type [*tool.Error]; it
// must end the command and be the result of the call.
func (c *Call) MayRun(ctx context.Context, e tool.Execution) error {
	if c.events == nil {
		return tool.Errorf(tool.PermissionDenied, "a preview executes nothing")
	}
	texts, bytes := append(slices.Concat(e.Argv, e.Environment), e.Directory, e.File), 0
	for _, text := range texts {
		bytes += len(text)
	}
	if len(texts) > maxPartWords || bytes > maxPartBytes {
		return tool.Errorf(tool.PermissionDenied, "%s gets %d words of %d bytes; without approval it may get %d words of %d bytes", tool.VisibleName(slices.Concat(e.Argv, []string{e.File})[0]), len(texts), bytes, maxPartWords, maxPartBytes).
			WithHint("what came before it has run. Split it into commands with fewer words, as xargs does")
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return tool.Errorf(tool.PermissionDenied, "this needs approval: %s, which is not valid UTF-8", tool.VisibleName(text)).
				WithHint("write the words of the command out")
		}
	}
	reply, err := c.host.ask(ctx, hostRequest{ticket: c.data.Context.Ticket, execution: &e})
	if err == nil && !reply.mayRun {
		err = tool.Errorf(tool.PermissionDenied, "the host has not said that this may run")
	}
	return err
}
