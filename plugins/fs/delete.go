package main

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/trash"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

type deleteFileArgs struct {
	Path      string `json:"path" jsonschema:"what to delete" role:"path" alias:"file_path,filename"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"with content"`
}

// deleting is a call of delete_file.
type deleting struct {
	target   *roots.Target
	trash    *trash.Trash
	slot     trash.Slot
	contents roots.Contents
	names    snapshot.NameList
}

var _ change = (*deleting)(nil)

// planDelete plans a call of delete_file.
func planDelete(ctx context.Context, w *workspace, in deleteFileArgs) (change, error) {
	t, err := w.target(in.Path, roots.TargetOptions{})
	if err != nil {
		return nil, err
	}
	if err := w.lock(ctx, t); err != nil {
		return nil, err
	}
	if err := t.Removable(); err != nil {
		return nil, err
	}
	c := &deleting{target: t}
	if c.contents, err = t.Contents(ctx, c.names.Add); err != nil {
		return nil, err
	}
	if inside := c.names.Total - 1; inside > 0 && !in.Recursive {
		return nil, tool.Errorf(tool.Failed, "Failed to delete: %s is a directory that is not empty, it contains %s", display.VisibleName(t.String()), inventoryBelow(&c.contents)).
			WithHint("set recursive to delete it with everything in it")
	}
	if c.trash, err = w.openTrash(); err != nil {
		return nil, err
	}
	if c.slot, err = c.trash.Slot(); err != nil {
		return nil, err
	}
	return c, t.Movable(ctx, c.slot.Content, roots.MoveOptions{})
}

// inventoryBelow counts the content of a directory, without itself.
func inventoryBelow(c *roots.Contents) string {
	below := *c
	below.Directories--
	return inventory(&below)
}

func (c *deleting) State(ctx context.Context) (string, error) {
	content, err := contentState(ctx, c.target, &c.contents)
	if err != nil {
		return "", err
	}
	return stateOf("delete_file", c.target.Identity(), content), nil
}

func (c *deleting) Show(ctx context.Context) (string, []tool.Content, error) {
	path := display.VisibleName(c.target.String())
	if !c.target.Info().IsDir() {
		before, err := snapshot.Take(ctx, c.target, 0)
		if err != nil {
			return "", nil, err
		}
		summary := fmt.Sprintf("Deletes the %s %s, to the trash", roots.Kind(c.target.Info().Mode()), path)
		if c.target.Info().Mode().Type() == fs.ModeSymlink {
			return summary, []tool.Content{tool.Text("Deletes only the link, not its target")}, nil
		}
		return summary, []tool.Content{tool.Text("Deletes: " + before.Describe())}, nil
	}
	summary := fmt.Sprintf("Deletes the directory %s with everything in it, to the trash: %s", path, inventory(&c.contents))
	return summary, c.names.Show(), nil
}

func (c *deleting) Apply(ctx context.Context) (tool.Result, error) {
	path := c.target.String()
	if err := c.trash.Put(ctx, c.slot, c.target, &c.contents); err != nil {
		return tool.Result{}, err
	}
	c.trash.Bound(ctx, c.slot.ID)
	text := fmt.Sprintf("Deleted %s (%s). It is in the trash as %s", display.VisibleName(path), inventory(&c.contents), c.slot.ID)
	result := tool.TextResult(text)
	result.Metadata = map[string]any{"path": path, "trash_id": c.slot.ID, "files": c.contents.Files, "bytes": c.contents.Bytes}
	result.Effects = []tool.Effect{changed(path, deleted)}
	return result, nil
}
