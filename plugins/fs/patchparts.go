package main

import (
	"context"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/edit"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/patch"
	"github.com/toolhost/toolhost/sdk/tool"
)

// apply applies one part of the patch, in memory.
func (s patchSides) apply(ctx context.Context, part *patch.File) error {
	switch part.Operation {
	case patch.Update:
		return s.update(ctx, part)
	case patch.Create:
		if err := s.new.absent(part); err != nil {
			return err
		}
		return s.new.become(ctx, part, nil)
	case patch.Delete:
		return s.remove(ctx, part)
	case patch.Rename:
	}
	return s.move(ctx, part)
}

// update changes a file in its place. Of two names in a diff, the file is the first that
// exists, unless that is the name of a backup.
func (s patchSides) update(ctx context.Context, part *patch.File) error {
	f := s.old
	if s.new != f && s.new.exists && (!f.exists || isBackup(part.Old)) {
		f = s.new
	}
	if err := f.present(part); err != nil {
		return err
	}
	before := f.data
	if err := f.become(ctx, part, before); err != nil {
		return err
	}
	if part.Mode == 0 && string(f.data) == string(before) {
		return tool.Errorf(tool.InvalidArgument, "The patch changes nothing in %s (line %d of the patch)", display.VisibleName(f.target.String()), part.Line).
			WithHint("give changed lines, each with - or + before it; nothing was changed")
	}
	return nil
}

// isBackup reports whether a name is that of a backup that a diff compares with.
func isBackup(name string) bool {
	for _, end := range []string{".orig", ".bak", "~"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// remove removes a file. If the patch shows its content, that must be all of it.
func (s patchSides) remove(ctx context.Context, part *patch.File) error {
	if err := s.old.present(part); err != nil {
		return err
	}
	if !part.EndKept {
		left, err := s.old.changed(ctx, part, s.old.data)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return tool.Errorf(tool.Failed, "The patch deletes %s (line %d of the patch), but not all of its lines: %d bytes would be left", display.VisibleName(s.old.target.String()), part.Line, len(left)).
				WithHint("a patch that deletes a file has all of its lines, each with - before it; nothing was changed")
		}
	}
	s.old.leave(false)
	return nil
}

// leave removes the file from its place; moved means that it is at another place.
func (f *patchedFile) leave(moved bool) {
	f.exists, f.data, f.made, f.moved, f.from, f.mode = false, nil, false, moved, nil, 0
}

// move moves a file and changes it.
func (s patchSides) move(ctx context.Context, part *patch.File) error {
	if err := s.old.present(part); err != nil {
		return err
	}
	if s.old == s.new {
		return tool.Errorf(tool.InvalidArgument, "The patch moves %s to itself (line %d of the patch)", display.VisibleName(s.old.target.String()), part.Line)
	}
	if err := s.new.absent(part); err != nil {
		return err
	}
	if err := s.new.become(ctx, part, s.old.data); err != nil {
		return err
	}
	s.new.from = s.old
	s.old.leave(true)
	return nil
}

// become gives the file the content that the part makes of data.
func (f *patchedFile) become(ctx context.Context, part *patch.File, data []byte) error {
	after, err := f.changed(ctx, part, data)
	if err != nil {
		return err
	}
	f.exists, f.data = true, after
	f.made = f.made || part.Operation != patch.Update
	if part.Mode != 0 {
		f.mode = part.Mode
	}
	return nil
}

// changed returns data, in its encoding, with the hunks of a part applied.
func (f *patchedFile) changed(ctx context.Context, part *patch.File, data []byte) ([]byte, error) {
	if len(part.Hunks) == 0 {
		return data, nil
	}
	path := f.target.String()
	old := snapshot.Snapshot{Exists: true, Kept: true, Size: int64(len(data)), Data: data, Head: data[:min(len(data), textfile.HeadSize)]}
	text, encoding, err := editable(path, &old, "")
	if err != nil {
		return nil, f.name(err)
	}
	after, notes, err := edit.ApplyHunks(ctx, path, text, part)
	if err != nil {
		return nil, err
	}
	f.notes = append(f.notes, notes...)
	written, err := edited(&old, encoding, after)
	if err != nil {
		return nil, f.name(err)
	}
	return written, nil
}

// present refuses a part about a file that does not exist.
func (f *patchedFile) present(part *patch.File) error {
	if f.exists {
		return nil
	}
	return tool.Errorf(tool.NotFound, "File not found: %s, which line %d of the patch names", display.VisibleName(f.target.String()), part.Line).
		WithHint("%s; nothing was changed", `a new file has /dev/null as its old name, or stands after "*** Add File: "`)
}

// absent refuses a part that creates a file that exists.
func (f *patchedFile) absent(part *patch.File) error {
	if !f.exists {
		return nil
	}
	return tool.Errorf(tool.Failed, "Failed to write file: file exists: %s, which line %d of the patch makes", display.VisibleName(f.target.String()), part.Line).
		WithHint("change the lines of the existing file, or delete it in a separate part before this one; nothing was changed")
}
