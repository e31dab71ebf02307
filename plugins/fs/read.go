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
	"syscall"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxWhole is the size up to which a file is read to its end, so that its
	// lines are counted and its hash is known.
	maxWhole = 64 << 20
	// maxScan is how much of a larger file is read to find the first line.
	maxScan = 1 << 30
	// noteRoom is what is left of the budget for the note that says how to go
	// on.
	noteRoom = 200
)

// lineRange is the arguments that choose lines of a file.
type lineRange struct {
	Offset *int `json:"offset,omitempty" jsonschema:"first line to return, counted from 1 (the default); a negative number counts from the end, so -20 returns the last 20 lines"`
	Column *int `json:"column,omitempty" jsonschema:"where in the first line to begin, in bytes of UTF-8 counted from 1 (the default): to read on in a line that was cut"`
	Limit  *int `json:"limit,omitempty" jsonschema:"how many lines to return at most; the default is as many as fit"`
}

// nothing is a window that shows nothing, to count lines.
var nothing = window{offset: math.MaxInt, limit: 1}

type readFileArgs struct {
	Path string `json:"path" jsonschema:"the file to read, relative to the workspace or absolute below it" role:"path" alias:"file_path,filename"`
	lineRange
	Encoding string `json:"encoding,omitempty" jsonschema:"how the bytes become text; auto looks at the byte order mark and the content" enum:"auto,utf-8,utf-16,utf-16le,utf-16be,latin1,windows-1252,shift_jis,gbk" default:"auto"`
}

// readFile is the tool read_file.
func readFile(ctx context.Context, w *workspace, in readFileArgs) (tool.Result, error) {
	return w.read(ctx, in.Path, in.lineRange, in.Encoding)
}

// read returns a window of the text of a file, or what else the file is.
func (w *workspace) read(ctx context.Context, name string, lines lineRange, encoding string) (tool.Result, error) {
	view := window{offset: 1, column: 1, limit: math.MaxInt, budget: min(w.budget-noteRoom, w.maxRead)}
	if lines.Offset != nil {
		view.offset = *lines.Offset
	}
	if lines.Column != nil {
		view.column = *lines.Column
	}
	if lines.Limit != nil {
		view.limit = *lines.Limit
	}
	if err := view.check(); err != nil {
		return tool.Result{}, err
	}
	f, err := w.openFile(name)
	if err != nil {
		return tool.Result{}, err
	}
	defer f.Close()

	if encoding == "" || encoding == "auto" {
		c, ok := detectCharset(f.head, f.whole())
		if !ok || isMedia(f.mediaType) {
			return w.readBinary(f)
		}
		f.charset = c
	} else if f.charset, err = namedCharset(encoding, f.head); err != nil {
		return tool.Result{}, err
	}
	room := min(w.budget, w.maxRead)
	if f.charset.decoder == nil && view.offset == 1 && view.limit == math.MaxInt && f.size <= int64(room) {
		view.budget = room // all of it fits, so that no note is needed
	}
	return f.read(ctx, view)
}

// check refuses a window that shows nothing.
func (w *window) check() error {
	switch {
	case w.offset == 0:
		return tool.Errorf(tool.InvalidArgument, "offset is 0, but lines are counted from 1").
			WithHint("leave offset out to begin with the first line")
	case w.column <= 0:
		return tool.Errorf(tool.InvalidArgument, "column is %d, expected at least 1", w.column).
			WithHint("leave column out to begin with the whole line")
	case w.limit <= 0:
		return tool.Errorf(tool.InvalidArgument, "limit is %d, expected at least 1", w.limit).
			WithHint("leave limit out for as many lines as fit")
	case w.budget < utf8.UTFMax:
		return tool.Errorf(tool.ResourceExhausted, "The output of this call is too small to hold text")
	default:
		return nil
	}
}

// file is a file that is being read.
type file struct {
	*os.File
	// path is how results show it.
	path string
	// size is the one that it had when it was opened: of what is written to it
	// since, nothing is read.
	size int64
	// shrunk says that it became shorter while it was read, to size.
	shrunk bool
	// head is its beginning, at most headSize bytes.
	head      []byte
	mediaType string
	charset   charset
}

// openFile opens a file and looks at its beginning. The caller closes it.
func (w *workspace) openFile(name string) (*file, error) {
	shown, err := w.Display(name)
	if err != nil {
		return nil, err
	}
	opened, err := w.Open(name)
	if err != nil {
		return nil, err
	}
	f := &file{File: opened, path: shown}
	if err := f.look(); err != nil {
		_ = opened.Close()
		return nil, readError(err)
	}
	return f, nil
}

func (f *file) look() error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	f.size = info.Size()
	head := make([]byte, headSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	f.head = head[:min(int64(n), f.size)]
	f.mediaType = mediaTypeOf(f.head)
	return nil
}

// whole reports whether head is all there is.
func (f *file) whole() bool { return f.size <= int64(len(f.head)) }

// readError says why a file that is open cannot be read. The number's own text
// is told: that of err names the file in the host's terms.
func readError(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return tool.Errorf(tool.Failed, "Failed to read file: %s", errno.Error()).WithCause(err)
	}
	return err
}

// read returns what the window shows.
func (f *file) read(ctx context.Context, view window) (tool.Result, error) {
	wholly := f.size <= maxWhole
	if view.offset < 0 && !wholly {
		return f.readEnd(ctx, view)
	}
	counted := -1
	if view.offset < 0 {
		all, err := f.scan(ctx, nothing, 0, nil, true)
		if err != nil {
			return tool.Result{}, err
		}
		counted = all.lines
		view.offset = max(1, counted+1+view.offset)
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
	result.Metadata["first_line"], result.Metadata["last_line"] = shown.first, shown.last
	if shown.ended {
		result.Metadata["total_lines"] = shown.lines
	}
	if digest != nil && !f.shrunk {
		result.Metadata["hash"] = fmt.Sprintf("sha256:%x", digest.Sum(nil))
	}
	switch {
	case shown.cut:
		result.Metadata["next_offset"], result.Metadata["next_column"] = shown.last, shown.next
	case !shown.ended || shown.last < shown.lines:
		result.Metadata["next_offset"] = shown.last + 1
	}
	if note := shown.note(); note != "" {
		result.Content = append(result.Content, tool.Text(note))
	}
	if f.shrunk {
		result.Content = append(result.Content, tool.Text("[the file became shorter while it was read: this is what was left of it]"))
	}
	return result, nil
}

// check refuses a window that the file does not have, or has no longer: if its
// lines were counted to find it, there must be as many now.
func (f *file) check(view window, shown excerpt, counted int) error {
	switch {
	case counted >= 0 && (f.shrunk || counted != shown.lines):
		return f.changed()
	case shown.short && shown.bounded:
		return tool.Errorf(tool.InvalidArgument, "column is %d, but of line %d of %s %d bytes can be read, up to the first GiB of the file", view.column, view.offset, tool.VisibleName(f.path), shown.length).
			WithHint("use a negative offset to read from the end")
	case shown.short:
		return tool.Errorf(tool.InvalidArgument, "column is %d, but line %d of %s has %d bytes", view.column, view.offset, tool.VisibleName(f.path), shown.length).
			WithHint("leave column out to begin with the whole line")
	case shown.last < view.offset && view.offset > 1:
		return f.beyond(view.offset, shown)
	default:
		return nil
	}
}

// readEnd returns the last lines of a file that is too large to count them
// all.
func (f *file) readEnd(ctx context.Context, view window) (tool.Result, error) {
	from := f.size - maxWhole
	from -= (from - int64(f.charset.bom)) % int64(f.charset.unit)
	all, err := f.scan(ctx, nothing, from, nil, true)
	if err != nil {
		return tool.Result{}, err
	}
	if f.shrunk {
		return tool.Result{}, f.changed()
	}
	// The first line began before from.
	offset := all.lines + 1 + view.offset
	if offset < 2 {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "offset is %d, but the last %d MiB of %s have %d lines only", view.offset, maxWhole>>20, tool.VisibleName(f.path), all.lines-1).
			WithHint("a file of this size can be read from its end that far; use a positive offset, or search_content")
	}
	back := view.offset
	view.offset = offset
	shown, err := f.scan(ctx, view, from, nil, true)
	if err != nil {
		return tool.Result{}, err
	}
	view.offset = back
	if err := f.check(view, shown, all.lines); err != nil {
		return tool.Result{}, err
	}
	result := f.result(shown)
	switch {
	case shown.cut:
		result.Metadata["next_offset"], result.Metadata["next_column"] = back, shown.next
		note := fmt.Sprintf("[the line is too long and was cut; continue in it with offset=%d column=%d]", back, shown.next)
		result.Content = append(result.Content, tool.Text(note))
	case shown.last < shown.lines:
		note := fmt.Sprintf("[%d of the last %d lines; more do not fit, use an offset nearer to the end]", shown.last-shown.first+1, -back)
		result.Content = append(result.Content, tool.Text(note))
	}
	return result, nil
}

// scan reads the text from the given byte on through the window. The digest,
// if there is one, is of the bytes.
func (f *file) scan(ctx context.Context, view window, from int64, digest hash.Hash, wholly bool) (excerpt, error) {
	section := io.NewSectionReader(f, from, max(min(f.size-from, maxScan), 0))
	raw := io.Reader(section)
	if digest != nil {
		raw = io.TeeReader(raw, digest)
	}
	if from == 0 {
		if _, err := io.CopyN(io.Discard, raw, int64(f.charset.bom)); err != nil && !errors.Is(err, io.EOF) {
			return excerpt{}, readError(err)
		}
	}
	shown, err := scan(ctx, f.charset.text(raw), view, f.size-from, wholly)
	if err != nil {
		return excerpt{}, readError(err)
	}
	if read, err := section.Seek(0, io.SeekCurrent); err != nil {
		return excerpt{}, err
	} else if shown.ended && read < section.Size() {
		f.size, f.shrunk = from+read, true
	}
	shown.bounded = shown.ended && f.size-from > maxScan
	shown.ended = shown.ended && !shown.bounded
	return shown, nil
}

// changed says that what was found out about the file does not hold any more.
func (f *file) changed() error {
	return tool.Errorf(tool.Conflict, "%s was changed while it was read", tool.VisibleName(f.path)).WithHint("read it again").WithRetry(0)
}

// beyond says that a file does not have the first line of the window.
func (f *file) beyond(offset int, seen excerpt) error {
	if f.size > maxWhole {
		return tool.Errorf(tool.InvalidArgument, "offset is %d, but the first GiB of %s has %d lines", offset, tool.VisibleName(f.path), seen.lines).
			WithHint("use a negative offset to read from the end, or search_content")
	}
	return tool.Errorf(tool.InvalidArgument, "offset is %d, but %s has %d lines", offset, tool.VisibleName(f.path), seen.lines).
		WithHint("use a negative offset to read from the end")
}

// result holds the text and the facts that every text has.
func (f *file) result(shown excerpt) tool.Result {
	facts := map[string]any{
		"path":        f.path,
		"total_bytes": f.size,
		"encoding":    f.charset.name,
		"eol":         shown.eol(),
	}
	if f.charset.bom > 0 {
		facts["byte_order_mark"] = true
	}
	content := []tool.Content{{Kind: tool.KindText, Data: shown.text}}
	if f.charset.loses(shown.text) {
		facts["invalid_characters"] = true
		content[0].Data = bytes.ToValidUTF8(shown.text, []byte("\uFFFD"))
		content = append(content, tool.Text(fmt.Sprintf("[bytes that are not %s are shown as U+FFFD; name another encoding, such as latin1]", f.charset.name)))
	}
	return tool.Result{Content: content, Metadata: facts}
}

// note says how to go on, or "" if the window reached the end.
func (e *excerpt) note() string {
	of := ""
	if e.ended {
		of = fmt.Sprintf(" of %d", e.lines)
	}
	switch {
	case e.ended && e.lines == 0:
		return "[the file is empty]"
	case e.cut && e.ended && e.last < e.lines:
		return fmt.Sprintf("[line %d%s is too long and was cut; continue in it with offset=%d column=%d, or after it with offset=%d]", e.last, of, e.last, e.next, e.last+1)
	case e.cut:
		return fmt.Sprintf("[line %d%s is too long and was cut; continue in it with offset=%d column=%d]", e.last, of, e.last, e.next)
	case e.ended && e.last == e.lines:
		return ""
	default:
		return fmt.Sprintf("[lines %d-%d%s; continue with offset=%d]", e.first, e.last, of, e.last+1)
	}
}
