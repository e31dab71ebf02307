package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/trash"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// missRoom is how many bytes of the list of the trash an error shows.
const missRoom = 2000

type restoreFileArgs struct {
	ID        string `json:"id,omitempty" jsonschema:"id in the trash" alias:"trash_id"`
	Path      string `json:"path,omitempty" jsonschema:"path where it was" role:"path" alias:"file_path,filename"`
	Dest      string `json:"dest,omitempty" jsonschema:"new path, if not where it was" role:"path" alias:"to,destination"`
	Overwrite bool   `json:"overwrite,omitempty" jsonschema:"replace what is there"`
	List      bool   `json:"list,omitempty" jsonschema:"only list the trash"`
}

// restoring is a call of restore_file.
type restoring struct {
	thing    trash.Item
	trash    *trash.Trash
	content  *roots.Target
	dest     *roots.Target
	options  roots.MoveOptions
	contents roots.Contents
	names    snapshot.NameList
	older    int // how many earlier items are from the same path
}

var _ change = (*restoring)(nil)

// planRestore plans a call of restore_file.
func planRestore(ctx context.Context, w *workspace, in restoreFileArgs) (change, error) {
	t, err := w.openTrash()
	if err != nil {
		return nil, err
	}
	all, err := t.Items(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(one trash.Item) bool {
		// An item without a path is of unknown origin. Its path may be forbidden now.
		return one.Empty || one.Path == "" || w.Forbids(one.Path)
	})
	if in.List {
		return &trashList{things: all, budget: w.budget}, nil
	}
	c := &restoring{trash: t, options: roots.MoveOptions{Overwrite: in.Overwrite}}
	if err := c.choose(w, in, all); err != nil {
		return nil, err
	}
	if c.dest, err = c.place(w, in.Dest); err != nil {
		return nil, err
	}
	if err := w.lock(ctx, c.dest); err != nil {
		return nil, err
	}
	if c.content, err = t.Target(c.thing.ID, "content"); err != nil {
		return nil, err
	}
	if err := t.Lock(ctx, c.content); err != nil {
		return nil, err
	}
	if c.content.Info() == nil {
		return nil, tool.Errorf(tool.NotFound, "%s is no longer in the trash", c.thing.ID).
			WithHint("it was restored, or permanently removed")
	}
	if in.Dest != "" {
		if err := fits(c.dest, in.Dest, c.thing.Shown, c.content.Info().Mode()); err != nil {
			return nil, err
		}
	}
	forbidden := false
	if c.contents, err = c.content.Contents(ctx, func(rel string, info fs.FileInfo) {
		c.names.Add(rel, info)
		forbidden = forbidden || w.Forbids(path.Join(c.thing.Path, rel))
	}); err != nil {
		return nil, trash.Hidden(err)
	}
	if forbidden {
		return nil, tool.Errorf(tool.PermissionDenied, "Path not allowed by security policy: %s", display.VisibleName(c.thing.Shown)).
			WithHint("it contains a file that the administrator has forbidden to all calls; continue without it")
	}
	return c, c.content.Movable(ctx, c.dest, c.options)
}

// choose finds the item that the arguments name.
func (c *restoring) choose(w *workspace, in restoreFileArgs, all []trash.Item) error {
	inTrash := "in the trash, the last first:\n" + trash.List(all, missRoom)
	switch {
	case in.ID != "" && in.Path != "":
		return tool.Errorf(tool.InvalidArgument, "id and path are both given; expected one of the two")
	case in.ID == "" && in.Path == "":
		return tool.Errorf(tool.InvalidArgument, "neither id nor path is given, expected one of the two").WithHint("%s", inTrash)
	case in.ID != "":
		i := slices.IndexFunc(all, func(one trash.Item) bool { return one.ID == in.ID })
		if i < 0 {
			return tool.Errorf(tool.NotFound, "The trash has no item with the id %s", display.VisibleName(in.ID)).WithHint("%s", inTrash)
		}
		c.thing = all[i]
		return nil
	}
	there, err := w.target(in.Path, roots.TargetOptions{Parents: true})
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.Path != there.Identity() {
			continue
		}
		if c.thing.ID != "" {
			c.older++
			continue
		}
		c.thing = one
	}
	if c.thing.ID == "" {
		return tool.Errorf(tool.NotFound, "The trash has nothing from %s", display.VisibleName(there.String())).WithHint("%s", inTrash)
	}
	return nil
}

// place opens the destination.
func (c *restoring) place(w *workspace, dest string) (*roots.Target, error) {
	if dest != "" {
		return w.target(dest, roots.TargetOptions{Parents: true})
	}
	t, err := w.target(c.thing.Path, roots.TargetOptions{Parents: true})
	var told *tool.Error
	if errors.As(err, &told) && told.Code == tool.PermissionDenied { // its message would name a folder of the host
		return nil, tool.Errorf(tool.PermissionDenied, "%s cannot be restored to its old place, which is outside this workspace or protected", display.VisibleName(c.thing.Shown)).
			WithHint("set dest to a path in the workspace")
	}
	return t, err
}

func (c *restoring) State(ctx context.Context) (string, error) {
	content, err := contentState(ctx, c.content, &c.contents)
	if err != nil {
		return "", err
	}
	replaced, err := snapshot.Take(ctx, c.dest, 0)
	if err != nil {
		return "", err
	}
	return stateOf("restore_file", c.thing.ID, content, c.dest.Identity(), replaced.State()), nil
}

func (c *restoring) Show(ctx context.Context) (string, []tool.Content, error) {
	dest := display.VisibleName(c.dest.String())
	summary := fmt.Sprintf("Restores %s to %s, deleted %s: %s", c.thing.ID, dest, c.thing.Deleted.Format(time.RFC3339), inventory(&c.contents))
	replaced, err := snapshot.Take(ctx, c.dest, 0)
	if err != nil {
		return "", nil, err
	}
	text := "Nothing is replaced."
	if replaced.Exists {
		summary += ", replacing the existing file"
		text = fmt.Sprintf("%s is replaced, and cannot be restored.\nold: %s", dest, replaced.Describe())
	}
	content := []tool.Content{tool.Text(text)}
	if c.content.Info().IsDir() {
		return summary, append(content, c.names.Show()...), nil
	}
	back, err := snapshot.Take(ctx, c.content, 0)
	if err != nil {
		return "", nil, trash.Hidden(err)
	}
	if c.content.Info().Mode().Type() == fs.ModeSymlink {
		return summary, append(content, tool.Text("Restores: a symbolic link")), nil
	}
	return summary, append(content, tool.Text("Restores: "+back.Describe())), nil
}

func (c *restoring) Apply(ctx context.Context) (tool.Result, error) {
	path, operation := c.dest.String(), arrival(c.dest)
	if err := c.content.MoveTo(ctx, c.dest, c.options); err != nil {
		return tool.Result{}, trash.Hidden(err)
	}
	c.trash.Forget(c.thing.ID)
	text := fmt.Sprintf("Restored %s (%s)", display.VisibleName(path), inventory(&c.contents))
	if c.older > 0 {
		text += fmt.Sprintf("; %d earlier items from this path are still in the trash", c.older)
	}
	result := tool.TextResult(text)
	result.Metadata = map[string]any{
		"path": path, "trash_id": c.thing.ID, "replaced": operation == updated,
		"deleted": c.thing.Deleted, "files": c.contents.Files, "bytes": c.contents.Bytes,
	}
	result.Effects = []tool.Effect{changed(path, operation)}
	return result, nil
}

// trashList is a call of restore_file that only lists.
type trashList struct {
	things []trash.Item
	budget int
}

var _ change = (*trashList)(nil)

func (c *trashList) State(context.Context) (string, error) { return stateOf("restore_file"), nil }

func (c *trashList) Show(context.Context) (string, []tool.Content, error) {
	return "Lists the trash", nil, nil
}

func (c *trashList) Apply(context.Context) (tool.Result, error) {
	text := trash.List(c.things, c.budget-page.NoteRoom)
	if len(c.things) == 0 {
		text = "[" + text + "]"
	}
	items := make([]map[string]any, 0, min(len(c.things), snapshot.MaxListed))
	for _, one := range c.things[:cap(items)] {
		items = append(items, map[string]any{"id": one.ID, "path": one.Shown, "kind": one.Kind, "files": one.Files, "bytes": one.Bytes, "deleted": one.Deleted})
	}
	result := tool.TextResult(text)
	result.Metadata = map[string]any{"total": len(c.things), "items": items}
	return result, nil
}
