package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/edit"
	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

type editFileArgs struct {
	Path       string     `json:"path" jsonschema:"file to edit" role:"path" alias:"file_path,filename"`
	Old        *string    `json:"old,omitempty" jsonschema:"text to replace" alias:"old_string"`
	New        *string    `json:"new,omitempty" jsonschema:"new text; empty deletes" alias:"new_string"`
	ReplaceAll bool       `json:"replace_all,omitempty" jsonschema:"all occurrences"`
	Edits      []fileEdit `json:"edits,omitempty" jsonschema:"several changes" max:"200"`
	ExpectHash string     `json:"expect_hash,omitempty" jsonschema:"the hash that it must have"`
	DryRun     bool       `json:"dry_run,omitempty" jsonschema:"only return the diff"`
	Encoding   string     `json:"encoding,omitempty" jsonschema:"as for read_file"`
}

// fileEdit is one of several changes.
type fileEdit struct {
	// Path is the file if it is not the one of the call.
	Path string `json:"path,omitempty" jsonschema:"if another file" role:"path" alias:"file_path"`
	edit.Replacement
}

// all returns the edits of the arguments in one form.
func (in *editFileArgs) all() ([]fileEdit, error) {
	given := in.Old != nil || in.New != nil
	switch {
	case given && len(in.Edits) > 0:
		return nil, tool.Errorf(tool.InvalidArgument, "both edits and old with new are given; expected one of the two")
	case len(in.Edits) > 0:
		edits := slices.Clone(in.Edits)
		for i := range edits {
			edits[i].Path = cmp.Or(edits[i].Path, in.Path)
		}
		return edits, nil
	case in.Old == nil || in.New == nil:
		return nil, tool.Errorf(tool.InvalidArgument, "old and new are both needed, or edits")
	default:
		return []fileEdit{{in.Path, edit.Replacement{Old: *in.Old, New: *in.New, All: in.ReplaceAll}}}, nil
	}
}

// editing is a call of edit_file.
type editing struct {
	target      *roots.Target
	before      snapshot.Snapshot
	budget      int
	dryRun      bool
	old, new    string // text before and after
	content     []byte // bytes after
	count, line int
	how         edit.Tolerance
}

var _ change = (*editing)(nil)

// planEdit plans a call of edit_file.
func planEdit(ctx context.Context, w *workspace, in editFileArgs) (change, error) {
	edits, err := in.all()
	if err != nil {
		return nil, err
	}
	in.Path = edits[0].Path
	if slices.ContainsFunc(edits, func(e fileEdit) bool { return e.Path != in.Path }) {
		return planEdits(ctx, w, in, edits)
	}
	t, err := w.fileTarget(in.Path, roots.TargetOptions{Follow: true})
	if err != nil {
		return nil, err
	}
	if err := w.lock(ctx, t); err != nil {
		return nil, err
	}
	path := t.String()
	if t.Info() == nil {
		return nil, noFileToEdit(t)
	}
	if err := t.Writable(); err != nil {
		return nil, err
	}
	c := &editing{target: t, dryRun: in.DryRun, budget: w.budget}
	if err := w.makeRoom(ctx, t.Info().Size()); err != nil {
		return nil, err
	}
	if c.before, err = snapshot.Take(ctx, t, edit.MaxBytes); err != nil {
		return nil, err
	}
	if err := c.before.Expect(path, in.ExpectHash); err != nil {
		return nil, err
	}
	encoding, err := c.read(in.Encoding)
	if err != nil {
		return nil, err
	}
	if err := c.apply(ctx, path, edits); err != nil {
		return nil, err
	}
	c.content, err = edited(&c.before, encoding, c.new)
	return c, err
}

// noFileToEdit returns the error for a file that does not exist.
func noFileToEdit(t *roots.Target) *tool.Error {
	return tool.Errorf(tool.NotFound, "File not found: %s", display.VisibleName(t.String())).
		WithHint("use write_file to create it").WithCause(fs.ErrNotExist)
}

// read decodes the file.
func (c *editing) read(name string) (encoding textfile.Charset, err error) {
	c.old, encoding, err = editable(c.target.String(), &c.before, name)
	return encoding, err
}

// editable returns the text of a file, if it encodes to the same bytes again. name is its
// encoding; "" and "auto" detect it.
func editable(path string, before *snapshot.Snapshot, name string) (text string, encoding textfile.Charset, err error) {
	if !before.Kept {
		return "", textfile.Charset{}, tool.Errorf(tool.ResourceExhausted, "%s has %d bytes, at most %d can be edited", display.VisibleName(path), before.Size, edit.MaxBytes).
			WithHint("use write_file to append, or a program")
	}
	text, encoding, ok := before.Text()
	if name != "" && name != "auto" {
		if encoding, err = textfile.Named(name, before.Data[:min(len(before.Data), textfile.HeadSize)]); err != nil {
			return "", encoding, err
		}
		text, err = encoding.Decode(before.Data)
		ok = err == nil
	}
	if !ok {
		return "", encoding, tool.Errorf(tool.Failed, "Failed to write file: it is not text: %s", before.Describe())
	}
	if !encoding.Keeps(text, before.Data) {
		return "", encoding, tool.Errorf(tool.Failed, "Failed to write file: it is not all %s text, and an edit would change more than it should", encoding.Name).
			WithHint("name the right encoding, or use a program")
	}
	if ends := strings.Count(text, "\n"); ends > edit.MaxLines {
		return "", encoding, tool.Errorf(tool.ResourceExhausted, "%s has %d lines, at most %d can be edited", display.VisibleName(path), ends, edit.MaxLines).
			WithHint("use write_file to append, or a program")
	}
	return text, encoding, nil
}

// edited encodes the new text of a file like its old text.
func edited(before *snapshot.Snapshot, encoding textfile.Charset, text string) ([]byte, error) {
	data, err := encoding.Encode(text)
	if err != nil {
		return nil, tool.Errorf(tool.Failed, "Failed to write file: it is written in %s, which lacks a character of the new text", encoding.Name).WithCause(err)
	}
	return slices.Concat(before.Data[:min(encoding.BOM, len(before.Data))], data), nil
}

// apply makes the replacements in memory.
func (c *editing) apply(ctx context.Context, path string, edits []fileEdit) error {
	c.new = c.old
	for i, edit := range edits {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text, done, err := edit.Apply(path, c.new)
		if err != nil && len(edits) > 1 {
			err = nameEdit(err, i+1)
		}
		if err != nil {
			return err
		}
		if c.count == 0 {
			c.line = done.Line
		}
		c.new = text
		c.count += done.Count
		c.how = max(c.how, done.How)
	}
	c.new = edit.KeepLastEnd(c.old, c.new)
	return nil
}

// nameEdit says which of several edits failed.
func nameEdit(err error, n int) error {
	var known *tool.Error
	if !errors.As(err, &known) {
		return err
	}
	told := *known
	told.Message = fmt.Sprintf("edit %d: %s; none of the edits was made", n, known.Message)
	return &told
}

func (c *editing) State(context.Context) (string, error) {
	return stateOf("edit_file", c.target.Identity(), c.before.State()), nil
}

func (c *editing) Show(context.Context) (string, []tool.Content, error) {
	path := c.target.String()
	summary := fmt.Sprintf("Edits %s: %s from line %d on", display.VisibleName(path), display.Plural(c.count, "replacement"), c.line)
	return summary, snapshot.ShowDiff(path, &c.before, c.old, c.new, true), nil
}

func (c *editing) Apply(context.Context) (tool.Result, error) {
	path := c.target.String()
	facts := map[string]any{
		"path": path, "replacements": c.count, "first_line": c.line, "bytes": len(c.content),
		"hash": fmt.Sprintf("sha256:%x", sha256.Sum256(c.content)),
	}
	facts["added"], facts["removed"] = snapshot.CountLineChanges(c.old, c.new)
	if c.dryRun {
		d, ok := snapshot.Compare(display.VisibleName("a/"+path), display.VisibleName("b/"+path), c.old, c.new)
		content := snapshot.LineEndNote(c.old, c.new)
		content = append(content, fitDiff(d, ok, c.budget-len(content)*page.NoteRoom)...)
		return tool.Result{Content: content, Metadata: facts}, nil
	}
	if err := c.target.Write(c.content, roots.WriteOptions{}); err != nil {
		return tool.Result{}, err
	}
	text := fmt.Sprintf("Edited %s: %s, the first at line %d", display.VisibleName(path), display.Plural(c.count, "replacement"), c.line)
	if note := c.how.Note(); note != "" {
		text += " (" + note + ")"
	}
	result := tool.TextResult(text)
	result.Metadata = facts
	result.Effects = []tool.Effect{changed(path, updated)}
	return result, nil
}

// fitDiff returns as much of a diff as fits the result.
func fitDiff(d snapshot.Difference, compared bool, budget int) []tool.Content {
	switch {
	case !compared:
		return []tool.Content{tool.Text("[the file is too large for a diff]")}
	case len(d.Text) <= budget:
		return []tool.Content{tool.Text(d.Text)}
	}
	whole := strings.LastIndexByte(d.Text[:max(budget-page.NoteRoom, 0)], '\n') + 1
	return []tool.Content{tool.Text(d.Text[:whole]), tool.Text(fmt.Sprintf("[%d of %d bytes of the diff]", whole, len(d.Text)))}
}
