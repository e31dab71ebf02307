package main

import (
	"context"
	"fmt"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// change is a planned change. Its files are locked.
type change = sdk.Change[tool.Result]

// planned is a change with the workspace of its call.
type planned struct {
	change
	w *workspace
}

// Apply implements [sdk.Change].
func (p planned) Apply(ctx context.Context) (tool.Result, error) {
	result, err := p.change.Apply(ctx)
	return result, explainMissing(err)
}

// Close closes the workspace at the end of the call.
func (p planned) Close() { _ = p.w.Close() } // every write is durable already

// addChange adds a tool that changes something. plan refuses a call that cannot succeed,
// and changes nothing. The description is the file with the tool's name.
func addChange[In any](p *sdk.Plugin, f *files, plan func(context.Context, *workspace, In) (change, error), spec tool.Spec) {
	spec.Category = "files"
	spec.Description = sdk.Description(descriptions, spec.Name)
	sdk.AddPlanned(p, spec, func(ctx context.Context, call *sdk.Call, in In) (change, error) {
		w, err := f.open(call)
		if err != nil {
			return nil, err
		}
		c, err := plan(ctx, w, in)
		if err != nil {
			err = w.suggest(ctx, explainMissing(err))
			_ = w.Close() // nothing was written
			return nil, err
		}
		return planned{c, w}, nil
	})
}

// target opens a place that the call changes. It is closed with the workspace.
func (w *workspace) target(name string, opts roots.TargetOptions) (*roots.Target, error) {
	t, err := w.Target(name, opts)
	if err != nil {
		return nil, explainName(name, err)
	}
	w.onClose = append(w.onClose, t.Close)
	return t, nil
}

// fileTarget opens the place of a file, not of a directory.
func (w *workspace) fileTarget(name string, opts roots.TargetOptions) (*roots.Target, error) {
	if err := namesFile(name); err != nil {
		return nil, err
	}
	return w.target(name, opts)
}

// lock locks the targets until the workspace is closed.
func (w *workspace) lock(ctx context.Context, targets ...*roots.Target) error {
	unlock, err := w.Lock(ctx, targets...)
	if err != nil {
		return err
	}
	w.onClose = append(w.onClose, unlock)
	return nil
}

// Operations of effects on files.
const (
	created = "create"
	updated = "update"
	deleted = "delete"
	movedTo = "move"
)

// arrival returns the operation of placing something at a target.
func arrival(at *roots.Target) string {
	if at.Info() != nil {
		return updated
	}
	return created
}

// changed returns the effect of a change on one file.
func changed(path, operation string) tool.Effect {
	return tool.Effect{Kind: "file.changed", Target: path, Operation: operation}
}

// stateOf joins parts into a text that differs for every list.
func stateOf(parts ...string) string { return fmt.Sprintf("%q", parts) }
