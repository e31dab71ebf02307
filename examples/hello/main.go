// Command hello is the smallest useful plugin: one tool, with its schema from a struct. Build it
// anywhere and add it to the host's config.hcl:
//
//	plugin "hello" {
//	  path   = "/path/to/hello"
//	  tier   = "read_only"
//	  claims = "trust"
//	}
package main

import (
	"context"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Args are the arguments of a call. A model sees the descriptions; the host checks that the
// greeting is one of the two and fills in the default.
type Args struct {
	Name     string `json:"name" jsonschema:"whom to greet"`
	Greeting string `json:"greeting,omitempty" jsonschema:"how to greet" enum:"Hello,Goodbye" default:"Hello"`
}

func main() { newPlugin().Serve() }

func newPlugin() *sdk.Plugin {
	p := sdk.New("hello", "1.0.0")
	sdk.AddTool(p, tool.Spec{
		Name:        "hello",
		Description: "Greets a person by name. Returns one line of text.",
		Tier:        tool.ReadOnly, // it changes nothing, so it runs without approval
	}, hello)
	return p
}

func hello(_ context.Context, _ *sdk.Call, in Args) (string, error) {
	if in.Name == "" {
		return "", tool.Errorf(tool.InvalidArgument, "the name is empty").WithHint("say whom to greet")
	}
	return in.Greeting + ", " + in.Name + "!", nil
}
