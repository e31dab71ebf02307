package main

import (
	"context"
	"fmt"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

type createDirectoryArgs struct {
	Path string `json:"path" jsonschema:"directory to create" role:"path" alias:"dir,directory"`
}

// making is a call of create_directory.
type making struct{ target *roots.Target }

var _ change = (*making)(nil)

// planDirectory plans a call of create_directory.
func planDirectory(ctx context.Context, w *workspace, in createDirectoryArgs) (change, error) {
	t, err := w.target(in.Path, roots.TargetOptions{Follow: true, Parents: true})
	if err != nil {
		return nil, err
	}
	if err := w.lock(ctx, t); err != nil {
		return nil, err
	}
	c := &making{t}
	if c.exists() {
		return c, nil
	}
	if t.Info() != nil {
		return nil, tool.Errorf(tool.Failed, "Failed to write file: it is a %s, not a directory", roots.Kind(t.Info().Mode()))
	}
	return c, t.Writable()
}

func (c *making) exists() bool { return c.target.Info() != nil && c.target.Info().IsDir() }

func (c *making) State(context.Context) (string, error) {
	return stateOf("create_directory", c.target.Identity(), fmt.Sprint(c.exists())), nil
}

func (c *making) Show(context.Context) (string, []tool.Content, error) {
	path := display.VisibleName(c.target.String())
	if c.exists() {
		return "Nothing: there is a directory " + path, nil, nil
	}
	return "Creates the directory " + path + " and its missing parents", nil, nil
}

func (c *making) Apply(context.Context) (tool.Result, error) {
	path := c.target.String()
	made, err := c.target.MakeDirectory()
	if err != nil {
		return tool.Result{}, err
	}
	if !made {
		result := tool.TextResult("Directory exists: " + display.VisibleName(path))
		result.Metadata = map[string]any{"path": path, "created": false}
		return result, nil
	}
	result := tool.TextResult("Created directory " + display.VisibleName(path))
	result.Metadata = map[string]any{"path": path, "created": true}
	result.Effects = []tool.Effect{changed(path, created)}
	return result, nil
}
