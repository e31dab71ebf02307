package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

type writeFileArgs struct {
	Path       string `json:"path" jsonschema:"file to write" role:"path" alias:"file_path,filename"`
	Content    string `json:"content" jsonschema:"the text"`
	Mode       string `json:"mode,omitempty" jsonschema:"create fails if the file exists" enum:"overwrite,create,append" default:"overwrite"`
	ExpectHash string `json:"expect_hash,omitempty" jsonschema:"the hash that it must have"`
	Verbatim   bool   `json:"verbatim,omitempty" jsonschema:"keep line ends as given"`
}

// writing is a call of write_file.
type writing struct {
	writeFileArgs
	target *roots.Target
	before *snapshot.Snapshot // nil until it is read
	// text is the content with the line ends of the file. content is written: in the file's
	// encoding, with its byte order mark.
	text    string
	content []byte
	kept    []string // what the new content keeps of the file, in words
}

var _ change = (*writing)(nil)

// planWrite plans a call of write_file.
func planWrite(ctx context.Context, w *workspace, in writeFileArgs) (change, error) {
	t, err := w.fileTarget(in.Path, roots.TargetOptions{Follow: true, Parents: true})
	if err != nil {
		return nil, err
	}
	if err := w.lock(ctx, t); err != nil {
		return nil, err
	}
	c := &writing{writeFileArgs: in, target: t, text: in.Content}
	if in.Mode == "create" && t.Info() != nil {
		return nil, tool.Errorf(tool.Failed, "Failed to write file: file exists").
			WithHint("%s exists; read it, or use another mode", display.VisibleName(t.String()))
	}
	if err := t.Writable(); err != nil {
		return nil, err
	}
	if info := t.Info(); info != nil {
		if err := w.makeRoom(ctx, min(info.Size(), snapshot.MaxDiff)); err != nil {
			return nil, err
		}
	}
	if in.ExpectHash != "" || in.Mode == "append" || strings.ContainsRune(in.Content, utf8.RuneError) {
		if err := c.look(ctx); err != nil {
			return nil, err
		}
		if err := c.before.Expect(t.String(), in.ExpectHash); err != nil {
			return nil, err
		}
	}
	return c, c.compose(ctx)
}

// look reads the file, once.
func (c *writing) look(ctx context.Context) error {
	if c.before != nil {
		return nil
	}
	before, err := snapshot.Take(ctx, c.target, snapshot.MaxDiff)
	c.before = &before
	return err
}

// compose determines the bytes to write.
func (c *writing) compose(ctx context.Context) error {
	if c.target.Info() != nil && !c.Verbatim {
		if err := c.adopt(ctx); err != nil {
			return err
		}
	}
	switch {
	case c.target.Info() != nil && c.Mode == "append":
		return c.encode()
	case slices.Contains(c.kept, keptMark):
		c.content = slices.Concat(textfile.MarkUTF8, []byte(c.text))
	default:
		c.content = []byte(c.text)
	}
	return nil
}

// Properties of the old file that the new content takes over.
const (
	keptMark = "the byte order mark"
	keptCRLF = "CRLF line ends"
)

// adopt takes over what no reader of the file sees: its byte order mark, and line ends
// that are all CRLF. It changes no content that has these itself, and ignores a file that
// is not text.
func (c *writing) adopt(ctx context.Context) error {
	before, f, err := snapshot.Peek(c.target)
	if err != nil || f == nil {
		return err
	}
	defer f.Close()
	encoding, ok := before.Charset()
	if !ok {
		return nil
	}
	if c.Mode != "append" && c.loses() {
		return tool.Errorf(tool.Failed, "Failed to write file: it has bytes that are not %s, which are shown as U+FFFD, and the content has U+FFFD", encoding.Name).
			WithHint("use edit_file, which keeps them, or read the file with its encoding; verbatim writes U+FFFD")
	}
	if c.Mode != "append" && encoding.Decoder == nil && encoding.BOM > 0 && !strings.HasPrefix(c.text, string(textfile.MarkUTF8)) {
		c.kept = append(c.kept, keptMark)
	}
	if textfile.LineEnds(c.text) != "\n" {
		return nil
	}
	start, err := encoding.Decode(before.Head)
	if err == nil && strings.Contains(start, "\n") && textfile.LineEnds(start) != "\r\n" {
		return nil
	}
	rest := io.NewSectionReader(f, int64(encoding.BOM), snapshot.MaxWhole)
	all, err := textfile.Scan(ctx, encoding.Text(rest), textfile.CountOnly, min(before.Size, snapshot.MaxWhole), true)
	if err != nil {
		return snapshot.ReadError(err)
	}
	if all.EOL() == "crlf" {
		c.text = textfile.WithLineEnd(c.text, "\r\n")
		c.kept = append(c.kept, keptCRLF)
	}
	return nil
}

// loses reports whether the content looks like a file with invalid bytes as read_file
// shows it.
func (c *writing) loses() bool {
	if c.before == nil || !strings.ContainsRune(c.Content, utf8.RuneError) {
		return false
	}
	text, encoding, ok := c.before.Text()
	return ok && encoding.Loses([]byte(text))
}

// encode encodes the text to append like the text of the file.
func (c *writing) encode() error {
	encoding, ok := c.before.Charset()
	if !ok {
		return tool.Errorf(tool.Failed, "Failed to write file: it is not text: %s", c.before.Describe()).
			WithHint("nothing can be added to it; overwrite replaces it")
	}
	content, err := encoding.Encode(c.text)
	if err != nil {
		return tool.Errorf(tool.Failed, "Failed to write file: it is written in %s, which lacks a character of the content", encoding.Name).WithCause(err)
	}
	c.content = content
	return nil
}

func (c *writing) State(ctx context.Context) (string, error) {
	if err := c.look(ctx); err != nil {
		return "", err
	}
	return stateOf("write_file", c.target.Identity(), c.before.State()), nil
}

func (c *writing) Show(ctx context.Context) (string, []tool.Content, error) {
	if err := c.look(ctx); err != nil {
		return "", nil, err
	}
	path := display.VisibleName(c.target.String())
	old, encoding, ok := c.before.Text()
	after := c.text
	var notes []tool.Content
	if len(c.kept) > 0 {
		notes = append(notes, tool.Text(c.keptNote()))
	}
	summary := fmt.Sprintf("Creates %s with %s", path, display.Plural(len(c.content), "byte"))
	switch {
	case c.before.Exists && c.Mode == "append":
		summary = fmt.Sprintf("Adds %s to the end of %s, which has %d", display.Plural(len(c.content), "byte"), path, c.before.Size)
		if !c.before.Kept {
			note := "The file is too large for a diff; its content stays, and this is added at the end:"
			return summary, slices.Concat(notes, []tool.Content{tool.Text(note)}, snapshot.Bounded("addition", after)), nil
		}
		after = old + after
	case c.before.Exists:
		summary = fmt.Sprintf("Replaces %s of %s with %d", display.Plural(int(c.before.Size), "byte"), path, len(c.content))
		now := "utf-8 without a byte order mark"
		if bytes.HasPrefix(c.content, textfile.MarkUTF8) {
			now = "utf-8 with a byte order mark"
			after = strings.TrimPrefix(after, string(textfile.MarkUTF8)) // as old is
		}
		if was := encoding.Describe(); ok && was != now && (was != "utf-8" || len(after) < len(c.text)) {
			notes = append(notes, tool.Text(fmt.Sprintf("The encoding changes from %s to %s.", was, now)))
		}
	}
	content := snapshot.ShowDiff(c.target.String(), c.before, old, after, ok && !strings.Contains(after, "\x00"))
	return summary, append(notes, content...), nil
}

// keptNote says what the new content keeps of the file.
func (c *writing) keptNote() string {
	return fmt.Sprintf("[as in the file that was there: %s; verbatim writes the content exactly]", strings.Join(c.kept, " and "))
}

func (c *writing) Apply(context.Context) (tool.Result, error) {
	path, operation := c.target.String(), arrival(c.target)
	options := roots.WriteOptions{Create: c.Mode == "create", Append: c.Mode == "append"}
	if err := c.target.Write(c.content, options); err != nil {
		return tool.Result{}, err
	}
	result := tool.TextResult(fmt.Sprintf("Wrote %d bytes to %s", len(c.content), display.VisibleName(path)))
	result.Metadata = map[string]any{"bytes_written": len(c.content), "path": path}
	if len(c.kept) > 0 {
		result.Content = append(result.Content, tool.Text(c.keptNote()))
		result.Metadata["kept"] = c.kept
	}
	if c.Mode != "append" {
		result.Metadata["hash"] = fmt.Sprintf("sha256:%x", sha256.Sum256(c.content))
	}
	result.Effects = []tool.Effect{changed(path, operation)}
	return result, nil
}
