// Command commands offers tools whose arguments have roles, and does nothing: tests of
// the policy ask what would happen to their calls.
package main

import (
	"context"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type commandArgs struct {
	Command string `json:"command" jsonschema:"what to run" role:"command" alias:"cmd"`
	Dir     string `json:"dir,omitempty" jsonschema:"where" role:"path" default:"."`
}

type scriptArgs struct {
	Input string `json:"input" jsonschema:"what to type" role:"script"`
}

type fetchArgs struct {
	URL string `json:"url" jsonschema:"what to fetch" role:"url"`
}

func main() {
	p := sdk.New("commands", "1.0.0")
	sdk.AddTool(p, tool.Spec{Name: "shell_exec", Description: "Says what it would run.", Tier: tool.Privileged, CommandTree: true},
		func(_ context.Context, _ *sdk.Call, in commandArgs) (string, error) {
			return "would run " + in.Command, nil
		})
	sdk.AddTool(p, tool.Spec{Name: "process_input", Description: "Says what it would type.", Tier: tool.Privileged},
		func(_ context.Context, _ *sdk.Call, in scriptArgs) (string, error) {
			return "would type " + in.Input, nil
		})
	sdk.AddTool(p, tool.Spec{Name: "fetch_url", Description: "Says what it would fetch.", Tier: tool.ReadOnly, OpenWorld: true},
		func(_ context.Context, _ *sdk.Call, in fetchArgs) (string, error) {
			return "would fetch " + in.URL, nil
		})
	p.Serve()
}
