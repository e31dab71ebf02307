package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

type writeFileArgs struct {
	Path       string `json:"path" jsonschema:"the file to write, relative to the workspace or absolute below it" role:"path" alias:"file_path,filename"`
	Content    string `json:"content" jsonschema:"the whole text to write; nothing is added to it"`
	Mode       string `json:"mode,omitempty" jsonschema:"overwrite creates the file or replaces its content, create refuses if there is a file, append adds to its end" enum:"overwrite,create,append" default:"overwrite"`
	ExpectHash string `json:"expect_hash,omitempty" jsonschema:"the hash that read_file gave; if the file holds anything else by now, nothing is written"`
	CreateDirs bool   `json:"create_dirs,omitempty" jsonschema:"create missing directories on the way" default:"true"`
}

// writing is a call of write_file.
type writing struct {
	writeFileArgs
	target *roots.Target
	before *snapshot // nil until it is needed
	// content is what is written, in the encoding of the file it is added to.
	content []byte
}

var _ change = (*writing)(nil)

// planWrite looks at what a call of write_file would change.
func planWrite(ctx context.Context, w *workspace, in writeFileArgs) (change, error) {
	t, err := w.target(in.Path, roots.TargetOptions{Follow: true, Parents: in.CreateDirs})
	if err != nil {
		return nil, err
	}
	if err := w.lock(ctx, t); err != nil {
		return nil, err
	}
	c := &writing{writeFileArgs: in, target: t, content: []byte(in.Content)}
	if in.Mode == "create" && t.Info() != nil {
		return nil, tool.Errorf(tool.Failed, "Failed to write file: file exists").
			WithHint("%s is there already; read it, or use another mode", tool.VisibleName(t.String()))
	}
	if err := t.Writable(); err != nil {
		return nil, err
	}
	if in.ExpectHash != "" || in.Mode == "append" {
		if err := c.look(ctx); err != nil {
			return nil, err
		}
		if err := c.before.expect(t.String(), in.ExpectHash); err != nil {
			return nil, err
		}
	}
	if in.Mode == "append" && t.Info() != nil {
		return c, c.encode()
	}
	return c, nil
}

// look reads what is there, once.
func (c *writing) look(ctx context.Context) error {
	if c.before != nil {
		return nil
	}
	before, err := take(ctx, c.target, maxDiff)
	c.before = &before
	return err
}

// encode writes the content as the text of the file is written, so that what
// is added to it can be read.
func (c *writing) encode() error {
	encoding, ok := c.before.charset()
	if !ok {
		return tool.Errorf(tool.Failed, "Failed to write file: it is not text: %s", c.before.describe()).
			WithHint("nothing can be added to it; overwrite replaces it")
	}
	content, err := encoding.encode(c.Content)
	if err != nil {
		return tool.Errorf(tool.Failed, "Failed to write file: it is written in %s, which lacks a character of the content", encoding.name).WithCause(err)
	}
	c.content = content
	return nil
}

func (c *writing) state(ctx context.Context) (string, error) {
	if err := c.look(ctx); err != nil {
		return "", err
	}
	return stateOf("write_file", c.target.Identity(), c.before.state()), nil
}

func (c *writing) show(ctx context.Context) (string, []tool.Content, error) {
	if err := c.look(ctx); err != nil {
		return "", nil, err
	}
	path := tool.VisibleName(c.target.String())
	old, encoding, ok := c.before.text()
	after := c.Content
	summary := fmt.Sprintf("Creates %s with %s", path, plural(len(c.content), "byte"))
	switch {
	case c.before.exists && c.Mode == "append":
		summary = fmt.Sprintf("Adds %s to the end of %s, which has %d", plural(len(c.content), "byte"), path, c.before.size)
		if !c.before.kept {
			note := "The file is too large for a diff; what it holds stays, and this is added to its end:"
			return summary, append([]tool.Content{tool.Text(note)}, bounded("addition", after)...), nil
		}
		after = old + after
	case c.before.exists:
		summary = fmt.Sprintf("Replaces %s of %s by %d", plural(int(c.before.size), "byte"), path, len(c.content))
	}
	content := showDiff(c.target.String(), c.before, old, after, ok && !strings.Contains(after, "\x00"))
	if written := c.before.exists && c.Mode != "append"; written && ok && (encoding.bom > 0 || encoding.decoder != nil) {
		note := fmt.Sprintf("The encoding changes from %s to utf-8 without a byte order mark.", encoding.describe())
		content = append([]tool.Content{tool.Text(note)}, content...)
	}
	return summary, content, nil
}

// describe names the encoding and says whether there is a byte order mark.
func (c charset) describe() string {
	if c.bom > 0 {
		return c.name + " with a byte order mark"
	}
	return c.name
}

func (c *writing) make(context.Context) (tool.Result, error) {
	operation := "update"
	if c.target.Info() == nil {
		operation = "create"
	}
	path := c.target.String()
	options := roots.WriteOptions{Create: c.Mode == "create", Append: c.Mode == "append"}
	if err := c.target.Write(c.content, options); err != nil {
		return tool.Result{}, err
	}
	result := tool.TextResult(fmt.Sprintf("Wrote %d bytes to %s", len(c.content), tool.VisibleName(path)))
	result.Metadata = map[string]any{"bytes_written": len(c.content), "path": path}
	if c.Mode != "append" {
		result.Metadata["hash"] = fmt.Sprintf("sha256:%x", sha256.Sum256(c.content))
	}
	result.Effects = []tool.Effect{changed(path, operation)}
	return result, nil
}
