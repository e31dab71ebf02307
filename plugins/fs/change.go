package main

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// change is a call that changes something, after everything that it depends on
// was looked at and before anything was done. What it concerns is locked.
type change interface {
	// state is everything that was looked at, as one text: the change is the
	// same as long as this is.
	state(ctx context.Context) (string, error)
	// show says what will happen.
	show(ctx context.Context) (summary string, content []tool.Content, err error)
	// make makes the change.
	make(ctx context.Context) (tool.Result, error)
}

// addChange adds a tool that changes something. plan refuses what cannot
// succeed and has no effects. The description is the file of its name.
func addChange[In any](p *sdk.Plugin, f *files, plan func(context.Context, *workspace, In) (change, error), spec tool.Spec) {
	spec.Category = "files"
	spec.Description = sdk.Description(descriptions, spec.Name)
	run := func(ctx context.Context, w *workspace, in In) (tool.Result, error) {
		c, err := plan(ctx, w, in)
		var digest []byte
		if err == nil && w.approved != nil {
			digest, err = digestOf(ctx, c)
		}
		if err := sdk.CheckPreview(w.approved, digest, err); err != nil {
			return tool.Result{}, err
		}
		return c.make(ctx)
	}
	preview := func(ctx context.Context, call *sdk.Call, in In) (tool.Preview, error) {
		w, err := f.open(call)
		if err != nil {
			return tool.Preview{}, err
		}
		defer func() { _ = w.Close() }() // nothing was written
		c, err := plan(ctx, w, in)
		if err != nil {
			return tool.Preview{}, explainMissing(err)
		}
		return previewOf(ctx, c)
	}
	sdk.AddToolWithPreview(p, spec, inWorkspace(f, run), preview)
}

func previewOf(ctx context.Context, c change) (tool.Preview, error) {
	digest, err := digestOf(ctx, c)
	if err != nil {
		return tool.Preview{}, err
	}
	summary, content, err := c.show(ctx)
	if err != nil {
		return tool.Preview{}, err
	}
	return tool.Preview{Summary: summary, Content: content, Digest: digest}, nil
}

// digestOf returns the digest of the state that c was computed from.
func digestOf(ctx context.Context, c change) ([]byte, error) {
	state, err := c.state(ctx)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(state))
	return sum[:], nil
}

// target opens a place that the call will change. It is closed with the
// workspace.
func (w *workspace) target(name string, opts roots.TargetOptions) (*roots.Target, error) {
	t, err := w.Target(name, opts)
	if err != nil {
		return nil, explainName(name, err)
	}
	w.onClose = append(w.onClose, t.Close)
	return t, nil
}

// fileTarget opens a place that can be that of a file only.
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

// The operations of effects on files.
const (
	created = "create"
	updated = "update"
	deleted = "delete"
	movedTo = "move"
)

// arrival is the operation of what will be put at a place.
func arrival(at *roots.Target) string {
	if at.Info() != nil {
		return updated
	}
	return created
}

// changed is the effect of a change on one file.
func changed(path, operation string) tool.Effect {
	return tool.Effect{Kind: "file.changed", Target: path, Operation: operation}
}

// stateOf makes one text of what was looked at; no two lists give the same.
func stateOf(parts ...string) string { return fmt.Sprintf("%q", parts) }
