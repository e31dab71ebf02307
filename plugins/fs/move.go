package main

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

type moveArgs struct {
	Source    string `json:"source" jsonschema:"file or directory" role:"path" alias:"from,src"`
	Dest      string `json:"dest" jsonschema:"new path" role:"path" alias:"to,destination"`
	Overwrite bool   `json:"overwrite,omitempty" jsonschema:"replace a file at dest"`
}

// moving is a call of move_file or copy_file.
type moving struct {
	source, dest *roots.Target
	options      roots.MoveOptions
	// contents is the content of the source; nil until it is needed.
	contents *roots.Contents
}

var _ change = (*moving)(nil)

// planMove plans a call of move_file.
func planMove(ctx context.Context, w *workspace, in moveArgs) (change, error) {
	return planTransfer(ctx, w, in, roots.TargetOptions{}, false)
}

// planCopy plans a call of copy_file.
func planCopy(ctx context.Context, w *workspace, in moveArgs) (change, error) {
	return planTransfer(ctx, w, in, roots.TargetOptions{Follow: true, Read: true}, true)
}

func planTransfer(ctx context.Context, w *workspace, in moveArgs, from roots.TargetOptions, copies bool) (change, error) {
	source, err := w.target(in.Source, from)
	if err != nil {
		return nil, err
	}
	dest, err := w.target(in.Dest, roots.TargetOptions{Parents: true})
	if err != nil {
		return nil, err
	}
	if err := w.lock(ctx, source, dest); err != nil {
		return nil, err
	}
	c := &moving{source: source, dest: dest, options: roots.MoveOptions{Overwrite: in.Overwrite, Copy: copies}}
	if info := source.Info(); info != nil {
		if err := fits(dest, in.Dest, source.String(), info.Mode()); err != nil {
			return nil, err
		}
	}
	return c, source.Movable(ctx, dest, c.options)
}

func (c *moving) look(ctx context.Context) error {
	if c.contents != nil {
		return nil
	}
	contents, err := c.source.Contents(ctx, nil)
	c.contents = &contents
	return err
}

func (c *moving) State(ctx context.Context) (string, error) {
	if err := c.look(ctx); err != nil {
		return "", err
	}
	source, err := contentState(ctx, c.source, c.contents)
	if err != nil {
		return "", err
	}
	replaced, err := snapshot.Take(ctx, c.dest, 0)
	if err != nil {
		return "", err
	}
	return stateOf(c.verb("move", "copy"), c.source.Identity(), source, c.dest.Identity(), replaced.State()), nil
}

// contentState returns the state of a file by its content, and of a directory by its
// names, sizes and times.
func contentState(ctx context.Context, t *roots.Target, contents *roots.Contents) (string, error) {
	if t.Info().Mode().IsRegular() {
		s, err := snapshot.Take(ctx, t, 0)
		return s.State(), err
	}
	return hex.EncodeToString(contents.Digest), nil
}

func (c *moving) verb(move, copies string) string {
	if c.options.Copy {
		return copies
	}
	return move
}

func (c *moving) Show(ctx context.Context) (string, []tool.Content, error) {
	if err := c.look(ctx); err != nil {
		return "", nil, err
	}
	source, dest := display.VisibleName(c.source.String()), display.VisibleName(c.dest.String())
	summary := fmt.Sprintf("%s %s to %s: %s", c.verb("Moves", "Copies"), source, dest, inventory(c.contents))
	replaced, err := snapshot.Take(ctx, c.dest, 0)
	if err != nil {
		return "", nil, err
	}
	if !replaced.Exists {
		return summary, []tool.Content{tool.Text("Nothing is replaced.")}, nil
	}
	moved, err := snapshot.Take(ctx, c.source, 0)
	if err != nil {
		return "", nil, err
	}
	text := fmt.Sprintf("%s is replaced, and cannot be restored.\nold: %s\nnew: %s", dest, replaced.Describe(), moved.Describe())
	return summary + ", replacing the existing file", []tool.Content{tool.Text(text)}, nil
}

// inventory counts files, directories and bytes.
func inventory(c *roots.Contents) string {
	text := fmt.Sprintf("%s, %s", display.Plural(c.Files, "file"), display.Plural(int(c.Bytes), "byte"))
	if c.Directories > 0 {
		text = display.Plural(c.Directories, "directory") + ", " + text
	}
	if c.Others > 0 {
		text += fmt.Sprintf(", %d links or special files", c.Others)
	}
	return text
}

func (c *moving) Apply(ctx context.Context) (tool.Result, error) {
	from, to, operation := c.source.String(), c.dest.String(), arrival(c.dest)
	if err := c.source.MoveTo(ctx, c.dest, c.options); err != nil {
		return tool.Result{}, err
	}
	effects := []tool.Effect{changed(to, operation)}
	if !c.options.Copy {
		effects = append([]tool.Effect{changed(from, movedTo)}, effects...)
	}
	result := tool.TextResult(fmt.Sprintf("%s %s to %s", c.verb("Moved", "Copied"), display.VisibleName(from), display.VisibleName(to)))
	result.Metadata = map[string]any{"source": from, "dest": to, "replaced": operation == updated}
	result.Effects = effects
	return result, nil
}
