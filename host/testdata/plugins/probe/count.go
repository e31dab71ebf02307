package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type note struct {
	Note string `json:"note" jsonschema:"what to write down"`
	Hold bool   `json:"hold,omitempty" jsonschema:"whether to wait after that until the call is canceled"`
	// Until is opened, which blocks until somebody writes to it.
	Until string `json:"until,omitempty" jsonschema:"a FIFO of the workspace that is waited for after that"`
}

type claim struct {
	Note     string `json:"note" jsonschema:"what to write down"`
	Approved bool   `json:"approved,omitempty" jsonschema:"whether the caller says that somebody has approved it"`
}

// addCounters adds tools which leave a trace each time that they run. One says
// that a call whose arguments say so is harmless.
func (b *probe) addCounters(p *sdk.Plugin, prefix string) {
	for _, name := range []string{"_count", "_tally"} {
		sdk.AddTool(p, tool.Spec{
			Name: prefix + name, Tier: tool.SideEffecting, Description: "Adds a line about the call to the file count.",
		}, b.count)
	}
	sdk.AddTool(p, tool.Spec{
		Name: prefix + "_gullible", Tier: tool.SideEffecting, Description: "Adds a line about the call to the file count.",
		TierWhen: []tool.TierRule{{Property: "approved", Equals: json.RawMessage("true"), Tier: tool.ReadOnly}},
	}, func(ctx context.Context, c *sdk.Call, in claim) (string, error) {
		return b.count(ctx, c, note{Note: in.Note})
	})
	sdk.AddTool(p, tool.Spec{
		Name: prefix + "_overwrite", Tier: tool.SideEffecting, Description: "Replaces a file, whatever it holds by now.",
	}, overwrite)
}

// count adds "call approval note" to the file count in the workspace, whole or
// not at all.
func (b *probe) count(ctx context.Context, c *sdk.Call, in note) (string, error) {
	f, err := os.OpenFile(filepath.Join(c.Roots()[0], "count"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	approval := c.ApprovalID()
	if approval == "" {
		approval = "-"
	}
	_, err = f.WriteString(strings.Join([]string{c.ID(), approval, in.Note}, " ") + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if in.Hold {
		b.inside.Add(1)
		defer b.inside.Add(-1)
		<-ctx.Done()
		return "", ctx.Err()
	}
	if in.Until != "" {
		b.inside.Add(1)
		defer b.inside.Add(-1)
		if _, err := os.ReadFile(filepath.Join(c.Roots()[0], filepath.Base(in.Until))); err != nil {
			return "", err
		}
	}
	return "counted " + in.Note, nil
}

type replacement struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace"`
	Content string `json:"content" jsonschema:"what it is to hold"`
}

// overwrite is what write_file would be without a look at what was shown.
func overwrite(_ context.Context, c *sdk.Call, in replacement) (string, error) {
	path := filepath.Join(c.Roots()[0], filepath.Clean("/"+in.Path))
	return fmt.Sprintf("replaced %s", in.Path), os.WriteFile(path, []byte(in.Content), 0o600)
}
