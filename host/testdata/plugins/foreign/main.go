// Command foreign is a plugin for tests: it stands for a bridge to another program, whose tools
// change. It reads them from the file tools.txt: in each line a name and a description.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type none struct{}

func main() {
	p := sdk.New("foreign", "1.0.0")
	stateDir := ""
	add := func(name, description string, then func(text []byte) error) {
		sdk.AddTool(p, tool.Spec{Name: name, Description: description, Tier: tool.ReadOnly}, func(_ context.Context, c *sdk.Call, _ none) (string, error) {
			text, err := os.ReadFile(filepath.Join(c.Roots()[0], "tools.txt"))
			if err == nil {
				err = os.WriteFile(saved(stateDir), text, 0o600)
			}
			if err == nil {
				err = then(text)
			}
			if err != nil {
				return "", tool.Errorf(tool.Failed, "%v", err)
			}
			return "changed", nil
		})
	}
	add("foreign_now", "Changes the tools at once.", func(text []byte) error { return sdk.SetRawTools(p, parse(text)) })
	add("foreign_later", "Changes the tools at the next start.", func([]byte) error { return nil })
	sdk.Configure(p, func(_ context.Context, c sdk.Config, _ none) error {
		stateDir = c.StateDir
		text, err := os.ReadFile(saved(stateDir))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			text = []byte("foreign_say Says something.")
		case err != nil:
			return err
		}
		return sdk.SetRawTools(p, parse(text))
	})
	p.Serve()
}

// saved is the file with the tools of the next start.
func saved(stateDir string) string { return filepath.Join(stateDir, "tools.txt") }

// parse returns the tools in a text. Their schemas lack what an own tool needs.
func parse(text []byte) (tools []sdk.RawTool) {
	for line := range strings.Lines(string(text)) {
		name, description, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		tools = append(tools, sdk.RawTool{
			Spec: tool.Spec{
				Name: name, Description: description, Tier: tool.SideEffecting, Foreign: true,
				InputSchema: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"text":{}}}`),
			},
			Run: func(_ context.Context, _ *sdk.Call, arguments json.RawMessage) (tool.Result, error) {
				return tool.TextResult(fmt.Sprintf("%s got %s", name, arguments)), nil
			},
		})
	}
	return tools
}
