package main

import (
	"context"

	"github.com/toolhost/toolhost/plugins/fs/internal/edit"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// editedFile is the text of a file that is edited together with others.
type editedFile struct {
	*patchedFile
	old, new string
	charset  textfile.Charset
}

// planEdits plans a call of edit_file that changes several files. They are changed like the
// files of a patch: all or none.
func planEdits(ctx context.Context, w *workspace, in editFileArgs, edits []fileEdit) (change, error) {
	if in.ExpectHash != "" {
		return nil, tool.Errorf(tool.InvalidArgument, "expect_hash is the hash of one file, and the edits are in several").
			WithHint("leave expect_hash out, or edit one file at a time")
	}
	c := &patching{dryRun: in.DryRun, budget: w.budget, words: editWords}
	parts := make([]*patchedFile, len(edits))
	for i := range edits {
		var err error
		if parts[i], err = c.file(w, edits[i].Path, true); err != nil {
			return nil, nameEdit(err, i+1)
		}
	}
	if err := c.look(ctx, w, growth(parts, edits)); err != nil {
		return nil, err
	}
	files := make(map[*patchedFile]*editedFile)
	size := 0
	for i := range edits {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		f, err := parts[i].decoded(files, in.Encoding)
		if err == nil {
			size -= len(f.new)
			err = f.edit(edits[i].Replacement)
		}
		if err == nil {
			if size += len(f.new); size > maxPatched {
				err = f.tooLarge(int64(len(f.new)), int64(size))
			}
		}
		if err != nil {
			return nil, nameEdit(err, i+1)
		}
	}
	for _, f := range c.files {
		var err error
		if f.data, err = files[f].encoded(); err != nil {
			return nil, f.name(err)
		}
	}
	if len(c.shown()) == 0 {
		return nil, tool.Errorf(tool.InvalidArgument, "The edits together change nothing")
	}
	return c, c.check(w)
}

// growth returns by how many bytes the edits may let the files grow, about.
func growth(files []*patchedFile, edits []fileEdit) int64 {
	sum := int64(0)
	for i, e := range edits {
		sum += int64(len(e.New))
		if info := files[i].target.Info(); e.All && len(e.Old) > 0 && info != nil {
			sum += min(edit.MaxBytes, min(edit.MaxBytes, info.Size())*int64(len(e.New))/int64(len(e.Old)))
		}
	}
	return sum
}

// decoded returns the text of a file, which it decodes once.
func (f *patchedFile) decoded(files map[*patchedFile]*editedFile, encoding string) (*editedFile, error) {
	if files[f] != nil {
		return files[f], nil
	}
	if !f.exists {
		return nil, noFileToEdit(f.target)
	}
	text, charset, err := editable(f.target.String(), &f.before, encoding)
	if err != nil {
		told := *tool.AsError(err)
		told.Message = display.VisibleName(f.target.String()) + ": " + told.Message
		return nil, &told
	}
	files[f] = &editedFile{f, text, text, charset}
	return files[f], nil
}

// encoded returns the content of a file after the edits.
func (f *editedFile) encoded() ([]byte, error) {
	return edited(&f.before, f.charset, edit.KeepLastEnd(f.old, f.new))
}

// edit makes one change in memory.
func (f *editedFile) edit(r edit.Replacement) error {
	text, done, err := r.Apply(f.target.String(), f.new)
	if err != nil {
		return err
	}
	f.new = text
	if note := done.How.Note(); note != "" {
		f.notes = append(f.notes, note)
	}
	return nil
}
