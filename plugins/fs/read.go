package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"unicode/utf8"

	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxLines is how many lines are returned of a file that does not fit as a whole.
	maxLines = 2000
	// maxScan is how much of a larger file is read to find the first line.
	maxScan = 1 << 30
)

// lineRange are the arguments that select lines of a file.
type lineRange struct {
	Offset *int `json:"offset,omitempty" jsonschema:"first line, from 1; negative from the end"`
	Column *int `json:"column,omitempty" jsonschema:"byte of the first line, from 1, if it was cut"`
	Limit  *int `json:"limit,omitempty" jsonschema:"most lines"`
}

type readFileArgs struct {
	Path string `json:"path" jsonschema:"file to read" role:"path" alias:"file_path,filename"`
	lineRange
	Pages       string `json:"pages,omitempty" jsonschema:"of a PDF: 3-7"`
	LineNumbers bool   `json:"line_numbers,omitempty" jsonschema:"as cat -n"`
	Encoding    string `json:"encoding,omitempty" jsonschema:"such as latin1"`
}

// readFile is the tool read_file.
func readFile(ctx context.Context, w *workspace, in readFileArgs) (tool.Result, error) {
	return w.read(ctx, in)
}

// read returns a window of the text of a file, or describes a file that is not text.
func (w *workspace) read(ctx context.Context, in readFileArgs) (tool.Result, error) {
	view, err := w.window(in)
	if err != nil {
		return tool.Result{}, err
	}
	f, err := w.openFile(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()

	auto := in.Encoding == "" || in.Encoding == "auto"
	switch {
	case auto && f.mediaType == pdfType:
		return w.readPDF(ctx, f, in, view)
	case in.Pages != "":
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "pages is for PDFs, and %s is read as %s", display.VisibleName(f.path), f.mediaType).
			WithHint("omit pages; use offset and limit to select lines of text")
	}
	if auto {
		c, ok := textfile.Detect(f.head, f.whole())
		if !ok || textfile.IsMedia(f.mediaType) {
			return w.readBinary(ctx, f)
		}
		f.charset = c
		if isNotebook(f.path) {
			return w.readNotebook(ctx, f, in, view)
		}
	} else if f.charset, err = textfile.Named(in.Encoding, f.head); err != nil {
		return tool.Result{}, err
	}
	return f.read(ctx, w.fitted(view, f, in))
}

// fitted returns the window for a file whose size and encoding are known.
func (w *workspace) fitted(view textfile.Window, f *file, in readFileArgs) textfile.Window {
	room := min(w.budget, w.maxRead)
	switch {
	case in.Limit != nil:
	case f.size > int64(room):
		view.Limit = maxLines
	case f.charset.Decoder == nil && view.Offset == 1 && !view.Numbered:
		view.Budget = room // all of it fits, so that no note is needed
	}
	return view
}

// window returns the window that a call asks for.
func (w *workspace) window(in readFileArgs) (textfile.Window, error) {
	view := textfile.Window{Offset: 1, Column: 1, Limit: math.MaxInt, Budget: min(w.budget-page.NoteRoom, w.maxRead), Numbered: in.LineNumbers}
	if in.Offset != nil {
		view.Offset = *in.Offset
	}
	if in.Column != nil {
		view.Column = *in.Column
	}
	if in.Limit != nil {
		view.Limit = *in.Limit
	}
	return view, checkWindow(view)
}

// checkWindow refuses a window that shows nothing.
func checkWindow(w textfile.Window) error {
	switch {
	case w.Offset == 0:
		return tool.Errorf(tool.InvalidArgument, "offset is 0, but lines are counted from 1").
			WithHint("leave offset out to begin with the first line")
	case w.Column <= 0:
		return tool.Errorf(tool.InvalidArgument, "column is %d, expected at least 1", w.Column).
			WithHint("leave column out to begin with the whole line")
	case w.Limit <= 0:
		return tool.Errorf(tool.InvalidArgument, "limit is %d, expected at least 1", w.Limit).
			WithHint("leave limit out for as many lines as fit")
	case w.Budget < utf8.UTFMax, w.Numbered && w.Budget < utf8.UTFMax+textfile.MaxNumber:
		return tool.Errorf(tool.ResourceExhausted, "The output of this call is too small to hold text")
	default:
		return nil
	}
}

// file is an open file that is read.
type file struct {
	*os.File
	// content is what is read: the file, or its content as text.
	content io.ReaderAt
	// path is the path in results.
	path string
	// size is the size when the file was opened; content written later is not read.
	size int64
	// shrunk means that the file became shorter, to size, while it was read.
	shrunk bool
	// head is the beginning of the file, at most [textfile.HeadSize] bytes.
	head      []byte
	mediaType string
	charset   textfile.Charset
}

// openFile opens a file and reads its head. The caller closes it.
func (w *workspace) openFile(name string) (*file, error) {
	shown, err := w.Display(name)
	if err != nil {
		return nil, err
	}
	opened, err := w.Open(name)
	if err != nil {
		return nil, err
	}
	f := &file{File: opened, content: opened, path: shown}
	if err := f.look(); err != nil {
		_ = opened.Close()
		return nil, snapshot.ReadError(err)
	}
	return f, nil
}

func (f *file) look() error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	f.size = info.Size()
	head := make([]byte, textfile.HeadSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	f.head = head[:min(int64(n), f.size)]
	f.mediaType = textfile.MediaType(f.head)
	return nil
}

// whole reports whether head is the whole file.
func (f *file) whole() bool { return f.size <= int64(len(f.head)) }

// read returns the lines of the window.
func (f *file) read(ctx context.Context, view textfile.Window) (tool.Result, error) {
	wholly := f.size <= snapshot.MaxWhole
	if view.Offset < 0 && !wholly {
		return f.readEnd(ctx, view)
	}
	counted := -1
	if view.Offset < 0 {
		all, err := f.scan(ctx, textfile.CountOnly, 0, nil, true)
		if err != nil {
			return tool.Result{}, err
		}
		counted = all.Lines
		view.Offset = max(1, counted+1+view.Offset)
	}
	var digest hash.Hash
	if wholly {
		digest = sha256.New()
	}
	shown, err := f.scan(ctx, view, 0, digest, wholly)
	if err != nil {
		return tool.Result{}, err
	}
	if err := f.check(view, shown, counted); err != nil {
		return tool.Result{}, err
	}
	result := f.result(shown)
	result.Metadata["first_line"], result.Metadata["last_line"] = shown.First, shown.Last
	if shown.Ended {
		result.Metadata["total_lines"] = shown.Lines
	}
	if digest != nil && !f.shrunk {
		result.Metadata["hash"] = fmt.Sprintf("sha256:%x", digest.Sum(nil))
	}
	switch {
	case shown.Cut:
		result.Metadata["next_offset"], result.Metadata["next_column"] = shown.Last, shown.Next
	case !shown.Ended || shown.Last < shown.Lines:
		result.Metadata["next_offset"] = shown.Last + 1
	}
	if note := readNote(&shown); note != "" {
		result.Content = append(result.Content, tool.Text(note))
	}
	if f.shrunk {
		result.Content = append(result.Content, tool.Text("[the file became shorter while it was read: this is the rest of it]"))
	}
	return result, nil
}

// check refuses a window that the file does not have, or no longer has: if its lines were
// counted before, there must be as many now.
func (f *file) check(view textfile.Window, shown textfile.Excerpt, counted int) error {
	switch {
	case counted >= 0 && (f.shrunk || counted != shown.Lines):
		return f.changed()
	case shown.Short && shown.Bounded:
		return tool.Errorf(tool.InvalidArgument, "column is %d, but of line %d of %s %d bytes can be read, up to the first GiB of the file", view.Column, view.Offset, display.VisibleName(f.path), shown.Length).
			WithHint("use a negative offset to read from the end")
	case shown.Short:
		return tool.Errorf(tool.InvalidArgument, "column is %d, but line %d of %s has %d bytes", view.Column, view.Offset, display.VisibleName(f.path), shown.Length).
			WithHint("leave column out to begin with the whole line")
	case shown.Last < view.Offset && view.Offset > 1:
		return f.beyond(view.Offset, shown)
	default:
		return nil
	}
}

// readEnd returns the last lines of a file that is too large to count all its lines.
func (f *file) readEnd(ctx context.Context, view textfile.Window) (tool.Result, error) {
	if view.Numbered {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "line_numbers needs the number of the first line, which a negative offset does not tell in a file of more than %d MiB", snapshot.MaxWhole>>20).
			WithHint("use a positive offset, or omit line_numbers")
	}
	from := f.size - snapshot.MaxWhole
	from -= (from - int64(f.charset.BOM)) % int64(f.charset.Unit)
	all, err := f.scan(ctx, textfile.CountOnly, from, nil, true)
	if err != nil {
		return tool.Result{}, err
	}
	if f.shrunk {
		return tool.Result{}, f.changed()
	}
	// The first line began before from.
	offset := all.Lines + 1 + view.Offset
	if offset < 2 {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "offset is %d, but the last %d MiB of %s have %d lines only", view.Offset, snapshot.MaxWhole>>20, display.VisibleName(f.path), all.Lines-1).
			WithHint("a file of this size can be read from its end that far; use a positive offset, or search_content")
	}
	back := view.Offset
	view.Offset = offset
	shown, err := f.scan(ctx, view, from, nil, true)
	if err != nil {
		return tool.Result{}, err
	}
	view.Offset = back
	if err := f.check(view, shown, all.Lines); err != nil {
		return tool.Result{}, err
	}
	result := f.result(shown)
	switch {
	case shown.Cut:
		result.Metadata["next_offset"], result.Metadata["next_column"] = back, shown.Next
		note := fmt.Sprintf("[the line is too long and was cut; continue in it with offset=%d column=%d]", back, shown.Next)
		result.Content = append(result.Content, tool.Text(note))
	case shown.Last < shown.Lines:
		note := fmt.Sprintf("[%d of the last %d lines; more do not fit, use an offset nearer to the end]", shown.Last-shown.First+1, -back)
		result.Content = append(result.Content, tool.Text(note))
	}
	return result, nil
}

// scan reads the text from byte from on through the window. It adds the bytes to digest
// unless that is nil.
func (f *file) scan(ctx context.Context, view textfile.Window, from int64, digest hash.Hash, wholly bool) (textfile.Excerpt, error) {
	section := io.NewSectionReader(f.content, from, max(min(f.size-from, maxScan), 0))
	raw := io.Reader(section)
	if digest != nil {
		raw = io.TeeReader(raw, digest)
	}
	if from == 0 {
		if _, err := io.CopyN(io.Discard, raw, int64(f.charset.BOM)); err != nil && !errors.Is(err, io.EOF) {
			return textfile.Excerpt{}, snapshot.ReadError(err)
		}
	}
	shown, err := textfile.Scan(ctx, f.charset.Text(raw), view, f.size-from, wholly)
	if err != nil {
		return textfile.Excerpt{}, snapshot.ReadError(err)
	}
	if read, err := section.Seek(0, io.SeekCurrent); err != nil {
		return textfile.Excerpt{}, err
	} else if shown.Ended && read < section.Size() {
		f.size, f.shrunk = from+read, true
	}
	shown.Bounded = shown.Ended && f.size-from > maxScan
	shown.Ended = shown.Ended && !shown.Bounded
	return shown, nil
}

// changed returns the error for a file that changed while it was read.
func (f *file) changed() error {
	return tool.Errorf(tool.Conflict, "%s was changed while it was read", display.VisibleName(f.path)).WithHint("read it again").WithRetry(0)
}

// beyond returns the error for a window that begins after the end of the file.
func (f *file) beyond(offset int, seen textfile.Excerpt) error {
	if f.size > snapshot.MaxWhole {
		return tool.Errorf(tool.InvalidArgument, "offset is %d, but the first GiB of %s has %d lines", offset, display.VisibleName(f.path), seen.Lines).
			WithHint("use a negative offset to read from the end, or search_content")
	}
	return tool.Errorf(tool.InvalidArgument, "offset is %d, but %s has %d lines", offset, display.VisibleName(f.path), seen.Lines).
		WithHint("use a negative offset to read from the end")
}

// result returns the text, with the facts about it.
func (f *file) result(shown textfile.Excerpt) tool.Result {
	facts := map[string]any{
		"path":        f.path,
		"total_bytes": f.size,
		"encoding":    f.charset.Name,
		"eol":         shown.EOL(),
	}
	if f.charset.BOM > 0 {
		facts["byte_order_mark"] = true
	}
	content := []tool.Content{{Kind: tool.KindText, Data: shown.Text}}
	if f.charset.Loses(shown.Text) {
		facts["invalid_characters"] = true
		content[0].Data = bytes.ToValidUTF8(shown.Text, []byte("\uFFFD"))
		content = append(content, tool.Text(fmt.Sprintf("[bytes that are not %s are shown as U+FFFD; name another encoding, such as latin1]", f.charset.Name)))
	}
	return tool.Result{Content: content, Metadata: facts}
}

// readNote says how to continue; it returns "" if the window reached the end.
func readNote(e *textfile.Excerpt) string {
	of := ""
	if e.Ended {
		of = fmt.Sprintf(" of %d", e.Lines)
	}
	switch {
	case e.Ended && e.Lines == 0:
		return "[the file is empty]"
	case e.Cut && e.Ended && e.Last < e.Lines:
		return fmt.Sprintf("[line %d%s is too long and was cut; continue in it with offset=%d column=%d, or after it with offset=%d]", e.Last, of, e.Last, e.Next, e.Last+1)
	case e.Cut:
		return fmt.Sprintf("[line %d%s is too long and was cut; continue in it with offset=%d column=%d]", e.Last, of, e.Last, e.Next)
	case e.Ended && e.Last == e.Lines:
		return ""
	default:
		return fmt.Sprintf("[lines %d-%d%s; continue with offset=%d]", e.First, e.Last, of, e.Last+1)
	}
}
