package sdk_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// The arguments of a tool: the tags become its schema.
type shoutArgs struct {
	Text  string `json:"text" jsonschema:"what to shout" raw:"true"`
	Style string `json:"style,omitempty" jsonschema:"how" enum:"plain,loud" default:"loud"`
}

// The main function of a plugin with one tool.
func ExampleAddTool() {
	p := sdk.New("shouter", "1.0.0")
	sdk.AddTool(p, tool.Spec{
		Name:        "shout",
		Description: "Turns text into a shout. Returns one line.",
		Tier:        tool.ReadOnly,
	}, func(_ context.Context, _ *sdk.Call, in shoutArgs) (string, error) {
		if in.Text == "" {
			return "", tool.Errorf(tool.InvalidArgument, "there is nothing to shout")
		}
		if in.Style == "plain" {
			return in.Text, nil
		}
		return strings.ToUpper(in.Text) + "!", nil
	})
	fmt.Println(p.Err())
	for _, s := range p.Tools() {
		fmt.Println(s.Name, string(s.InputSchema))
	}
	// p.Serve() would now wait for the host.

	// Output:
	// <nil>
	// shout {"type":"object","properties":{"text":{"type":"string","description":"what to shout","x-raw":true},"style":{"type":"string","description":"how","default":"loud","enum":["plain","loud"]}},"required":["text"],"additionalProperties":false}
}

// Mistakes are reported by name, all at once.
func ExamplePlugin_Err() {
	p := sdk.New("example", "1.0.0")
	type args struct {
		Path string `json:"path"`
		Mode string `json:"mode,omitempty" jsonschema:"how to open it" enum:"text,binary" default:"txt"`
	}
	sdk.AddTool(p, tool.Spec{Name: "open", Description: "Opens a file.", Tier: tool.ReadOnly},
		func(context.Context, *sdk.Call, args) (string, error) { return "", nil })
	fmt.Println(p.Err())
	// Output:
	// tool "open": path: has no description; say what it is for with `jsonschema:"..."`
	// tool "open": mode: default "txt" is not in the enum ("text", "binary")
}

type storeSettings struct {
	MaxSize tool.ByteSize `json:"max_size,omitempty" jsonschema:"how large the store may grow" default:"1GiB"`
}

// A plugin with settings: the host checks them against the struct's schema.
func ExampleConfigure() {
	p := sdk.New("store", "1.0.0")
	sdk.Configure(p, func(_ context.Context, cfg sdk.Config, s storeSettings) error {
		if s.MaxSize < tool.MiB {
			return &sdk.SettingError{Path: []string{"max_size"}, Summary: "at least 1MiB is needed"}
		}
		p.Logger().Info("store opened", "directory", cfg.StateDir)
		return nil
	})
	fmt.Println(p.Err())
	// Output: <nil>
}

// Configure opens the database, OnStop closes it.
func ExamplePlugin_OnStop() {
	p := sdk.New("store", "1.0.0")
	sdk.Configure(p, func(_ context.Context, cfg sdk.Config, _ struct{}) error {
		f, err := os.Create(filepath.Join(cfg.StateDir, "store"))
		if err != nil {
			return err
		}
		p.OnStop(func() { _ = f.Close() }) // Serve calls it at the end
		return nil
	})
	fmt.Println(p.Err())
	// Output: <nil>
}
