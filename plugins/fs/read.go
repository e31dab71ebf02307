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
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"

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
	view := window{offset: 1, limit: math.MaxInt, budget: min(w.budget-noteRoom, w.maxRead)}
	if lines.Offset != nil {
		view.offset = *lines.Offset
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
	size int64
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
	f.head = head[:n]
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
	if view.offset < 0 {
		all, err := f.scan(ctx, nothing, 0, nil, true)
		if err != nil {
			return tool.Result{}, err
		}
		view.offset = max(1, all.lines+1+view.offset)
	}
	var digest hash.Hash
	if wholly {
		digest = sha256.New()
	}
	shown, err := f.scan(ctx, view, 0, digest, wholly)
	if err != nil {
		return tool.Result{}, err
	}
	if shown.last < view.offset && view.offset > 1 {
		return tool.Result{}, f.beyond(view.offset, shown)
	}
	result := f.result(shown)
	result.Metadata["first_line"], result.Metadata["last_line"] = shown.first, shown.last
	if shown.ended {
		result.Metadata["total_lines"] = shown.lines
	}
	if digest != nil {
		result.Metadata["hash"] = fmt.Sprintf("sha256:%x", digest.Sum(nil))
	}
	if !shown.ended || shown.last < shown.lines {
		result.Metadata["next_offset"] = shown.last + 1
	}
	if note := shown.note(); note != "" {
		result.Content = append(result.Content, tool.Text(note))
	}
	return result, nil
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
	// The first line began before from.
	offset := all.lines + 1 + view.offset
	if offset < 2 {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "offset is %d, but the last %d MiB of %s have %d lines only", view.offset, maxWhole>>20, tool.VisibleName(f.path), all.lines-1).
			WithHint("a file of this size can be read from its end that far; use a positive offset, or search_content")
	}
	view.offset = offset
	shown, err := f.scan(ctx, view, from, nil, true)
	if err != nil {
		return tool.Result{}, err
	}
	result := f.result(shown)
	if shown.last < shown.lines || shown.cut {
		note := fmt.Sprintf("[%d of the last %d lines; more do not fit, use an offset nearer to the end]", shown.last-shown.first+1, -view.offset)
		result.Content = append(result.Content, tool.Text(note))
	}
	return result, nil
}

// scan reads the text from the given byte on through the window. The digest,
// if there is one, is of the bytes.
func (f *file) scan(ctx context.Context, view window, from int64, digest hash.Hash, wholly bool) (excerpt, error) {
	raw := io.Reader(io.NewSectionReader(f, from, maxScan))
	if digest != nil {
		raw = io.TeeReader(raw, digest)
	}
	if from == 0 {
		if _, err := io.CopyN(io.Discard, raw, int64(f.charset.bom)); err != nil {
			return excerpt{}, readError(err)
		}
	}
	shown, err := scan(ctx, f.charset.text(raw), view, f.size-from, wholly)
	if err != nil {
		return excerpt{}, readError(err)
	}
	shown.ended = shown.ended && f.size-from <= maxScan
	return shown, nil
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
	text := shown.text
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
		facts["invalid_characters"] = true
	}
	return tool.Result{Content: []tool.Content{{Kind: tool.KindText, Data: text}}, Metadata: facts}
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
	case e.cut && (!e.ended || e.last < e.lines):
		return fmt.Sprintf("[line %d%s is too long and was cut; continue with offset=%d]", e.last, of, e.last+1)
	case e.cut:
		return fmt.Sprintf("[line %d%s is too long and was cut; use search_content to look into it]", e.last, of)
	case e.ended && e.last == e.lines:
		return ""
	default:
		return fmt.Sprintf("[lines %d-%d%s; continue with offset=%d]", e.first, e.last, of, e.last+1)
	}
}

// mediaTypeOf returns what a file is by its beginning. What has several names has
// the one that clients know, and a PNG that moves is one all the same.
func mediaTypeOf(head []byte) string {
	switch found := mimetype.Detect(head).String(); found {
	case "image/apng", "image/vnd.mozilla.apng":
		return "image/png"
	case "audio/x-m4a":
		return "audio/mp4"
	default:
		return found
	}
}

// isMedia reports whether a model may see or hear the type itself.
func isMedia(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "audio/mpeg", "audio/wav", "audio/ogg", "audio/flac", "audio/mp4":
		return true
	default:
		return false
	}
}

// readBinary returns an image or audio as content, and says what else is.
func (w *workspace) readBinary(f *file) (tool.Result, error) {
	facts := map[string]any{"path": f.path, "total_bytes": f.size, "media_type": f.mediaType}
	room := int64(min(w.budget, w.maxRead))
	if !isMedia(f.mediaType) {
		text := fmt.Sprintf("Binary file: %s, %d bytes", f.mediaType, f.size)
		return tool.Result{Content: []tool.Content{tool.Text(text)}, Metadata: facts}, nil
	}
	if f.size > room {
		text := fmt.Sprintf("%s of %d bytes, too large to show: at most %d bytes are possible", f.mediaType, f.size, room)
		return tool.Result{Content: []tool.Content{tool.Text(text)}, Metadata: facts}, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, room))
	if err != nil {
		return tool.Result{}, readError(err)
	}
	kind := tool.KindImage
	if strings.HasPrefix(f.mediaType, "audio/") {
		kind = tool.KindAudio
	}
	content := tool.Content{Kind: kind, MediaType: f.mediaType, Name: path.Base(f.path), Data: data}
	return tool.Result{Content: []tool.Content{content}, Metadata: facts}, nil
}
