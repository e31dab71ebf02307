package hosttools

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/call/results"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxPart bounds the bytes of one part; minPart has room for any character.
	maxPart = 32 * tool.KiB
	minPart = utf8.UTFMax
	// noteSize is room for the last line.
	noteSize = tool.KiB
	// maxReads bounds the concurrent reads.
	maxReads = 64
)

const readSchema = `{
	"type": "object",
	"properties": {
		"handle": {"type": "string", "description": "the handle that the end of the cut output names, tc_..."},
		"cursor": {"type": "integer", "minimum": 0, "maximum": 9007199254740991, "description": "the byte to read from; default 0, the beginning"},
		"limit": {"type": "integer", "minimum": %d, "maximum": %d, "description": "how many bytes to read at most; default %d"}
	},
	"required": ["handle"]
}`

// readInput are the arguments of result_read. A number may be written as 1e3.
type readInput struct {
	Handle string  `json:"handle"`
	Cursor float64 `json:"cursor"`
	Limit  float64 `json:"limit"`
}

// read returns a part of a kept result. The last line tells how to read the next one.
func (t *Tools) read(call tool.Call) (tool.Result, error) {
	in := readInput{Limit: float64(maxPart)}
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return tool.Result{}, fmt.Errorf("read the arguments of %s: %w", catalog.ResultRead, err)
	}
	r, err := t.opts.Results.Find(call.Context.User, in.Handle)
	if err != nil {
		return tool.Result{}, err
	}
	defer func() { _ = r.Close() }() // nothing was written
	cursor := int64(in.Cursor)
	if cursor > r.Size {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "cursor: %d is beyond the end of the result, expected 0 to %d", cursor, r.Size).
			WithHint("the whole begins with %s", pipeline.ReadOn(in.Handle, 0))
	}
	text, next, err := part(r, r.Size, cursor, int(in.Limit))
	if err != nil {
		return tool.Result{}, tool.Errorf(tool.Unavailable, "the result %s cannot be read", in.Handle).WithCause(err).
			WithHint("make the call that had it again")
	}
	facts := map[string]any{"handle": in.Handle, "cursor": cursor, "bytes": r.Size}
	if next < r.Size {
		facts["next_cursor"] = next
	}
	// Two parts: the kept text, and the line about it.
	return tool.Result{
		Content:  []tool.Content{{Kind: tool.KindText, Data: text}, tool.Text(lastLine(r, in.Handle, cursor, next))},
		Metadata: facts,
	}, nil
}

// part reads at most limit bytes of text from a reader of the given size. It returns
// whole characters, with U+FFFD for invalid bytes. next is the start of the next part.
func part(r io.ReaderAt, size, cursor int64, limit int) (text []byte, next int64, err error) {
	data := make([]byte, min(int64(limit+utf8.UTFMax), size-cursor))
	if n, err := r.ReadAt(data, cursor); n < len(data) && err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the file was truncated
		}
		return nil, 0, err
	}
	last := cursor+int64(len(data)) == size
	text = make([]byte, 0, min(limit, len(data)))
	for used := 0; used < len(data); {
		char, width := utf8.DecodeRune(data[used:])
		if len(text)+utf8.RuneLen(char) > limit || !last && !utf8.FullRune(data[used:]) {
			return text, cursor + int64(used), nil
		}
		text = utf8.AppendRune(text, char)
		used += width
	}
	return text, cursor + int64(len(data)), nil
}

// lastLine tells which part was read, and how to read the next one.
func lastLine(r *results.Result, handle string, cursor, next int64) string {
	where := fmt.Sprintf("[bytes %d to %d of %d; ", cursor, next, r.Size)
	switch {
	case next < r.Size:
		return where + "the rest: " + pipeline.ReadOn(handle, next) + "]"
	case r.Size < r.Whole:
		return where + fmt.Sprintf("this was the end of what is kept: the whole had %d bytes, which is too long to be kept]", r.Whole)
	}
	return where + "this was the end]"
}
