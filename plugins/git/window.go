package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxStream is how much of an output goes to the host, which keeps it for result_read,
// in bytes.
const maxStream = 64 << 20

// window is a part of a long output that starts at a cursor and fits into a result. It
// holds only this part in memory.
type window struct {
	start  int64
	expect string // the digest of everything before start, from the cursor
	room   int

	pos    int64
	before hash.Hash
	kept   []byte
	// stream, if not nil, receives the output, up to maxStream.
	stream func([]byte) (int, error)
}

// minRoom is the minimum size of a window, so that each contains something.
const minRoom = 64

// digestSize is the number of bytes of the digest in a cursor.
const digestSize = 8

// window returns the window of a cursor. The first window also sends the whole output
// to the host, where result_read can read it.
func (s *access) window(cursor sdk.Cursor, room int) (*window, error) {
	w := &window{room: max(room, minRoom), before: sha256.New()}
	if cursor == "" {
		w.stream = s.call.Write
		return w, nil
	}
	w.start, w.expect = cursor.Position()
	if w.start == 0 || len(w.expect) != 2*digestSize {
		return nil, cursor.Refuse()
	}
	return w, nil
}

// Write reads the next part of the output. It returns enough when the window is full.
func (w *window) Write(data []byte) (int, error) {
	size := len(data)
	if w.stream != nil && w.pos < maxStream {
		if _, err := w.stream(data); err != nil {
			return 0, err
		}
	}
	if skip := min(int64(len(data)), max(0, w.start-w.pos)); skip > 0 {
		w.before.Write(data[:skip])
		data = data[skip:]
	}
	w.pos += int64(size)
	w.kept = append(w.kept, data[:min(len(data), w.room+1-len(w.kept))]...)
	if len(w.kept) > w.room && (w.stream == nil || w.pos >= maxStream) {
		return size, enough
	}
	return size, nil
}

// take returns the part and the cursor of the next one, or "" if there is none. The part
// consists of whole lines, unless a single line is too long.
func (w *window) take() (text string, next sdk.Cursor, err error) {
	if w.start > 0 && (w.pos < w.start || hex.EncodeToString(w.before.Sum(nil)[:digestSize]) != w.expect) {
		return "", "", tool.Errorf(tool.Conflict, "The output has changed since the cursor was returned").WithHint("start again without cursor")
	}
	fits, size := 0, 0
	for line := range bytes.Lines(w.kept) {
		size += display.JSONSize(string(line)) - 2
		if size > w.room || fits+len(line) > w.room {
			break
		}
		fits += len(line)
	}
	if fits == 0 && len(w.kept) > 0 { // one line is too long
		for size = 0; fits < len(w.kept) && size < w.room-8; {
			_, n := utf8.DecodeRune(w.kept[fits:])
			size += max(n, display.JSONSize(string(w.kept[fits:fits+n]))-2)
			fits += n
		}
	}
	if fits == len(w.kept) && w.start+int64(fits) >= w.pos {
		return string(w.kept), "", nil
	}
	w.before.Write(w.kept[:fits])
	return string(w.kept[:fits]), sdk.CursorAt(w.start+int64(fits), hex.EncodeToString(w.before.Sum(nil)[:digestSize])), nil
}
