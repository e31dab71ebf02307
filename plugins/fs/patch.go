package main

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/toolhost/toolhost/plugins/fs/internal/edit"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/trash"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/patch"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxPatched is the maximum size of all files of one call together, before and after.
const maxPatched = 32 << 20

type applyPatchArgs struct {
	Patch  string `json:"patch" jsonschema:"the patch" role:"patch" alias:"diff,input" raw:"true"`
	DryRun bool   `json:"dry_run,omitempty" jsonschema:"only return the diff"`
}

// patching is a call of apply_patch, or of edit_file for several files.
type patching struct {
	files  []*patchedFile // in the order of the patch
	trash  *trash.Trash   // nil if nothing is deleted
	dryRun bool
	budget int
	words  changeWords
}

var _ change = (*patching)(nil)

// changeWords say what happens to several files.
type changeWords struct{ plan, done, dry string }

var (
	patchWords = changeWords{"Applies a patch to", "Applied the patch to", "the patch applies to"}
	editWords  = changeWords{"Edits", "Edited", "the edits apply to"}
)

// patchedFile is a file of a patch: its state before, and after the parts of the patch
// that were applied.
type patchedFile struct {
	target *roots.Target
	before snapshot.Snapshot
	exists bool
	data   []byte
	mode   fs.FileMode // 0 if the patch sets none
	// from is the file that was moved here; nil if none was.
	from *patchedFile
	// made means that a part of the patch has put it here, and moved that its
	// content is elsewhere now.
	made, moved bool
	notes       []string
	trashID     string // if it is deleted
}

// planPatch plans a call of apply_patch.
func planPatch(ctx context.Context, w *workspace, in applyPatchArgs) (change, error) {
	parts, err := patch.Parse(in.Patch)
	if err != nil {
		return nil, err
	}
	c := &patching{dryRun: in.DryRun, budget: w.budget, words: patchWords}
	sides, err := c.open(w, parts)
	if err != nil {
		return nil, err
	}
	if err := c.look(ctx, w, 0); err != nil {
		return nil, err
	}
	for i := range parts {
		if err := sides[i].apply(ctx, &parts[i]); err != nil {
			return nil, err
		}
	}
	return c, c.check(w)
}

// patchSides are the files of one part of a patch, before and after. They can be the
// same.
type patchSides struct{ old, new *patchedFile }

// open opens every file of the patch, once.
func (c *patching) open(w *workspace, parts []patch.File) ([]patchSides, error) {
	sides := make([]patchSides, len(parts))
	for i := range parts {
		part, side := &parts[i], &sides[i]
		var err error
		if part.Old != "" {
			side.old, err = c.file(w, part.Old, part.Operation == patch.Update)
		}
		if err == nil && part.New != "" {
			side.new, err = c.file(w, part.New, part.Operation == patch.Update)
		}
		if err != nil {
			return nil, err
		}
	}
	return sides, nil
}

// file returns the file with a name. A symbolic link is followed only to update a file.
func (c *patching) file(w *workspace, name string, follow bool) (*patchedFile, error) {
	t, err := w.fileTarget(name, roots.TargetOptions{Follow: follow, Parents: true})
	if err != nil {
		return nil, err
	}
	for _, f := range c.files {
		if f.target.Identity() == t.Identity() {
			t.Close()
			return f, nil
		}
	}
	f := &patchedFile{target: t}
	c.files = append(c.files, f)
	return f, nil
}

// look locks the files and reads them. growth is by how many bytes they may grow.
func (c *patching) look(ctx context.Context, w *workspace, growth int64) error {
	targets := make([]*roots.Target, len(c.files))
	for i, f := range c.files {
		targets[i] = f.target
	}
	if err := w.lock(ctx, targets...); err != nil {
		return err
	}
	total := growth
	for _, f := range c.files {
		if info := f.target.Info(); info != nil {
			total += info.Size()
		}
	}
	if err := w.makeRoom(ctx, total); err != nil {
		return err
	}
	total = 0
	for _, f := range c.files {
		if f.target.Info() == nil {
			f.before = snapshot.Snapshot{Kept: true}
			continue
		}
		if err := f.target.Writable(); err != nil {
			return f.name(err)
		}
		var err error
		if f.before, err = snapshot.Take(ctx, f.target, edit.MaxBytes); err != nil {
			return err
		}
		if total += f.before.Size; !f.before.Kept || total > maxPatched {
			return f.tooLarge(f.before.Size, total)
		}
		f.exists, f.data = true, f.before.Data
	}
	return nil
}

// tooLarge returns the error for a file that is too large, alone or together with those
// before it.
func (f *patchedFile) tooLarge(size, total int64) error {
	const hint = "move_file, copy_file or a program; nothing was changed"
	if size > edit.MaxBytes {
		return tool.Errorf(tool.ResourceExhausted, "%s has %d bytes; at most %d can be changed", display.VisibleName(f.target.String()), size, edit.MaxBytes).
			WithHint("use " + hint)
	}
	return tool.Errorf(tool.ResourceExhausted, "The files up to %s have %d bytes together; the maximum is %d", display.VisibleName(f.target.String()), total, maxPatched).
		WithHint("change fewer files at once, or use " + hint)
}

// name adds the name of the file to an error.
func (f *patchedFile) name(err error) error {
	told := *tool.AsError(err)
	told.Message = fmt.Sprintf("%s: %s; nothing was done", display.VisibleName(f.target.String()), told.Message)
	return &told
}

// check refuses changes that cannot be made together, and finds a place in the trash for
// each deleted file.
func (c *patching) check(w *workspace) error {
	total := 0
	for _, f := range c.files {
		if total += len(f.data); len(f.data) > edit.MaxBytes || total > maxPatched {
			return f.tooLarge(int64(len(f.data)), int64(total))
		}
		if f.exists {
			if err := f.target.Writable(); err != nil {
				return f.name(err)
			}
		} else if f.before.Exists {
			if err := f.target.Removable(); err != nil {
				return f.name(err)
			}
		}
		if f.operation() != deleted {
			continue
		}
		if c.trash == nil {
			var err error
			if c.trash, err = w.openTrash(); err != nil {
				return err
			}
			if _, err := c.trash.Slot(); err != nil {
				return err
			}
		}
		f.trashID = trash.NewID()
	}
	return nil
}

// operation returns what happens to the file; "" if nothing does.
func (f *patchedFile) operation() string {
	switch {
	case f.exists && !f.before.Exists:
		return created
	case f.exists && (f.made || f.mode != 0 || string(f.data) != string(f.before.Data)):
		return updated
	case !f.exists && f.before.Exists && f.moved:
		return movedTo
	case !f.exists && f.before.Exists:
		return deleted
	default:
		return ""
	}
}

func (c *patching) State(context.Context) (string, error) {
	parts := []string{c.words.plan}
	for _, f := range c.files {
		parts = append(parts, f.target.Identity(), f.before.State())
	}
	return stateOf(parts...), nil
}

// changes returns the changes to make, removals last: a crash in between leaves a file
// twice, and never loses one.
func (c *patching) changes() []roots.Change {
	var changes, last []roots.Change
	for _, f := range c.files {
		switch f.operation() {
		case created, updated:
			one := roots.Change{Target: f.target, Content: f.data, Mode: f.mode}
			if f.from != nil && f.from.before.Exists {
				one.Like = f.from.target
			}
			changes = append(changes, one)
		case deleted, movedTo:
			last = append(last, roots.Change{Target: f.target, Remove: true})
		}
	}
	return slices.Concat(changes, last)
}

func (c *patching) Apply(ctx context.Context) (tool.Result, error) {
	result := c.report()
	if c.dryRun {
		return result, nil
	}
	kept, err := c.keep()
	if err != nil { // nothing is changed yet
		for _, id := range kept {
			c.trash.Forget(id)
		}
		return tool.Result{}, err
	}
	if err := roots.ChangeAll(c.changes()); err != nil {
		return tool.Result{}, c.undone(err)
	}
	if c.trash != nil {
		c.trash.Bound(ctx, kept...)
	}
	for _, f := range c.files {
		if operation := f.operation(); operation != "" {
			result.Effects = append(result.Effects, changed(f.target.String(), operation))
		}
	}
	return result, nil
}

// undone removes the trash items of a failed change, except files that could not be put back.
func (c *patching) undone(err error) error {
	told := *tool.AsError(err)
	for _, f := range c.files {
		switch {
		case f.operation() != deleted:
		case f.target.Gone():
			told.Message += fmt.Sprintf("; %s is in the trash as %s", display.VisibleName(f.target.String()), f.trashID)
		default:
			c.trash.Forget(f.trashID)
		}
	}
	return &told
}

// keep copies deleted files into the trash and returns their ids.
func (c *patching) keep() (ids []string, err error) {
	for _, f := range c.files {
		if f.operation() != deleted {
			continue
		}
		ids = append(ids, f.trashID)
		if err := c.trash.Keep(f.trashID, f.target, f.before.Data); err != nil {
			return ids, err
		}
	}
	return ids, nil
}
