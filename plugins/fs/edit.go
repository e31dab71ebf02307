package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

type editFileArgs struct {
	Path       string        `json:"path" jsonschema:"the file to edit, relative to the workspace or absolute below it" role:"path" alias:"file_path,filename"`
	Old        *string       `json:"old,omitempty" jsonschema:"the text to replace, as it is in the file; whole lines are best" alias:"old_string"`
	New        *string       `json:"new,omitempty" jsonschema:"the text to put there instead; empty to delete" alias:"new_string"`
	ReplaceAll bool          `json:"replace_all,omitempty" jsonschema:"replace every occurrence of old; without it there must be exactly one" default:"false"`
	Edits      []replacement `json:"edits,omitempty" jsonschema:"several replacements instead of old and new, each made in the result of the one before; all are made or none" max:"200"`
	ExpectHash string        `json:"expect_hash,omitempty" jsonschema:"the hash that file_info shows; if the file holds anything else by now, nothing is written"`
	DryRun     bool          `json:"dry_run,omitempty" jsonschema:"change nothing, only return the diff" default:"false"`
	Encoding   string        `json:"encoding,omitempty" jsonschema:"how the bytes are text, as for read_file" enum:"auto,utf-8,utf-16,utf-16le,utf-16be,latin1,windows-1252,shift_jis,gbk" default:"auto"`
}

// replacements returns what the arguments say, in one form.
func (in *editFileArgs) replacements() ([]replacement, error) {
	given := in.Old != nil || in.New != nil
	switch {
	case given && len(in.Edits) > 0:
		return nil, tool.Errorf(tool.InvalidArgument, "old and new are given beside edits; expected one of the two")
	case len(in.Edits) > 0:
		return in.Edits, nil
	case in.Old == nil || in.New == nil:
		return nil, tool.Errorf(tool.InvalidArgument, "old and new are both needed, or edits")
	default:
		return []replacement{{Old: *in.Old, New: *in.New, All: in.ReplaceAll}}, nil
	}
}

// editing is a call of edit_file.
type editing struct {
	target      *roots.Target
	before      snapshot
	budget      int
	dryRun      bool
	old, new    string // text
	content     []byte // the new content
	count, line int
	how         tolerance
}

var _ change = (*editing)(nil)

// planEdit looks at what a call of edit_file would change.
func planEdit(ctx context.Context, w *workspace, in editFileArgs) (change, error) {
	edits, err := in.replacements()
	if err != nil {
		return nil, err
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
		return nil, tool.Errorf(tool.NotFound, "File not found: %s", tool.VisibleName(path)).WithHint("use write_file to create it")
	}
	if err := t.Writable(); err != nil {
		return nil, err
	}
	c := &editing{target: t, dryRun: in.DryRun, budget: w.budget}
	if err := w.makeRoom(ctx, t.Info().Size()); err != nil {
		return nil, err
	}
	if c.before, err = take(ctx, t, maxEdit); err != nil {
		return nil, err
	}
	if err := c.before.expect(path, in.ExpectHash); err != nil {
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

// read makes text of the file.
func (c *editing) read(name string) (encoding charset, err error) {
	c.old, encoding, err = editable(c.target.String(), &c.before, name)
	return encoding, err
}

// editable returns what a file holds as text, if that can be made bytes again
// as they were. The encoding is the named one, or what the file looks like.
func editable(path string, before *snapshot, name string) (text string, encoding charset, err error) {
	if !before.kept {
		return "", charset{}, tool.Errorf(tool.ResourceExhausted, "%s has %d bytes, at most %d can be edited", tool.VisibleName(path), before.size, maxEdit).
			WithHint("use write_file to append, or a program")
	}
	text, encoding, ok := before.text()
	if name != "" && name != "auto" {
		if encoding, err = namedCharset(name, before.data[:min(len(before.data), headSize)]); err != nil {
			return "", encoding, err
		}
		text, err = encoding.decode(before.data)
		ok = err == nil
	}
	if !ok {
		return "", encoding, tool.Errorf(tool.Failed, "Failed to write file: it is not text: %s", before.describe())
	}
	if !encoding.keeps(text, before.data) {
		return "", encoding, tool.Errorf(tool.Failed, "Failed to write file: it is not all %s text, and an edit would change more than it should", encoding.name).
			WithHint("name the right encoding, or use a program")
	}
	if ends := strings.Count(text, "\n"); ends > maxLines {
		return "", encoding, tool.Errorf(tool.ResourceExhausted, "%s has %d lines, at most %d can be edited", tool.VisibleName(path), ends, maxLines).
			WithHint("use write_file to append, or a program")
	}
	return text, encoding, nil
}

// edited makes bytes of the new text of a file, as it was written before.
func edited(before *snapshot, encoding charset, text string) ([]byte, error) {
	data, err := encoding.encode(text)
	if err != nil {
		return nil, tool.Errorf(tool.Failed, "Failed to write file: it is written in %s, which lacks a character of the new text", encoding.name).WithCause(err)
	}
	return slices.Concat(before.data[:min(encoding.bom, len(before.data))], data), nil
}

// apply makes the replacements in memory.
func (c *editing) apply(ctx context.Context, path string, edits []replacement) error {
	c.new = c.old
	for i, edit := range edits {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text, done, err := edit.apply(path, c.new)
		if err != nil && len(edits) > 1 {
			err = nameEdit(err, i+1)
		}
		if err != nil {
			return err
		}
		if c.count == 0 {
			c.line = done.line
		}
		c.new = text
		c.count += done.count
		c.how = max(c.how, done.how)
	}
	c.new = keepLastEnd(c.old, c.new)
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
	return stateOf("edit_file", c.target.Identity(), c.before.state()), nil
}

func (c *editing) Show(context.Context) (string, []tool.Content, error) {
	path := c.target.String()
	summary := fmt.Sprintf("Edits %s: %s from line %d on", tool.VisibleName(path), plural(c.count, "replacement"), c.line)
	return summary, showDiff(path, &c.before, c.old, c.new, true), nil
}

func (c *editing) Apply(context.Context) (tool.Result, error) {
	path := c.target.String()
	facts := map[string]any{
		"path": path, "replacements": c.count, "first_line": c.line, "bytes": len(c.content),
		"hash": fmt.Sprintf("sha256:%x", sha256.Sum256(c.content)),
	}
	facts["added"], facts["removed"] = countLineChanges(c.old, c.new)
	if c.dryRun {
		d, ok := compare(tool.VisibleName("a/"+path), tool.VisibleName("b/"+path), c.old, c.new)
		content := eolNote(c.old, c.new)
		content = append(content, fitDiff(d, ok, c.budget-len(content)*noteRoom)...)
		return tool.Result{Content: content, Metadata: facts}, nil
	}
	if err := c.target.Write(c.content, roots.WriteOptions{}); err != nil {
		return tool.Result{}, err
	}
	text := fmt.Sprintf("Edited %s: %s, the first at line %d", tool.VisibleName(path), plural(c.count, "replacement"), c.line)
	if note := c.how.note(); note != "" {
		text += " (" + note + ")"
	}
	result := tool.TextResult(text)
	result.Metadata = facts
	result.Effects = []tool.Effect{changed(path, updated)}
	return result, nil
}

// fitDiff returns a diff as far as the result has room for it.
func fitDiff(d difference, compared bool, budget int) []tool.Content {
	switch {
	case !compared:
		return []tool.Content{tool.Text("[the file is too large for a diff]")}
	case len(d.text) <= budget:
		return []tool.Content{tool.Text(d.text)}
	}
	whole := strings.LastIndexByte(d.text[:max(budget-noteRoom, 0)], '\n') + 1
	return []tool.Content{tool.Text(d.text[:whole]), tool.Text(fmt.Sprintf("[%d of %d bytes of the diff]", whole, len(d.text)))}
}
