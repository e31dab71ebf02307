package hosttools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/host/internal/call/pipeline"
	"github.com/toolhost/toolhost/host/internal/call/results"
	"github.com/toolhost/toolhost/host/internal/tools/catalog"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxPart bounds the bytes of one part; minPart fits any character.
	maxPart = 40 * tool.KiB
	minPart = utf8.UTFMax
	// maxPartLines bounds the lines of one part.
	maxPartLines = 1_990
	// noteSize reserves bytes for the last line and for the marks of untrusted content.
	noteSize = 512
	// maxReads bounds the concurrent reads.
	maxReads = 64
)

const readSchema = `{
	"type": "object",
	"properties": {
		"handle": {"type": "string", "description": "tc_..., from the end of the output"},
		"cursor": {"type": "integer", "minimum": 0, "maximum": 9007199254740991, "description": "byte to start at"},
		"limit": {"type": "integer", "minimum": %d, "maximum": %d, "description": "most bytes to return"},
		"line": {"type": "integer", "minimum": 1, "maximum": 9007199254740991, "description": "or line to start at"},
		"pattern": {"type": "string", "minLength": 1, "maxLength": %d, "description": "return matching lines only (RE2)"},
		"context": {"type": "integer", "minimum": 0, "maximum": %d, "description": "lines around each match"},
		"select": {"type": "string", "maxLength": %d, "description": "JSON pointer such as /items/0/name"}
	},
	"required": ["handle"]
}`

// readInput holds the arguments of result_read. Numbers may be written as 1e3.
type readInput struct {
	Handle  string  `json:"handle"`
	Cursor  float64 `json:"cursor,omitempty"`
	Limit   float64 `json:"limit,omitempty"`
	Line    float64 `json:"line,omitempty"`
	Pattern string  `json:"pattern,omitempty"`
	Context float64 `json:"context,omitempty"`
	Select  *string `json:"select,omitempty"`
}

// next returns the call that reads from a byte on, as a model writes it.
func (in readInput) next(cursor int64) string {
	in.Cursor, in.Line, in.Limit = float64(cursor), 0, 0
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(in) // strings and numbers always encode
	return catalog.ResultRead + " " + strings.TrimSuffix(text.String(), "\n")
}

// span is the part of a result to read or search.
type span struct {
	from, to int64
	cursor   int64 // where to start, from <= cursor <= to
}

// read returns a part of a kept result, or the lines that match. The last line tells how to
// read the next part.
func (t *Tools) read(ctx context.Context, call tool.Call) (tool.Result, error) {
	var in readInput
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return tool.Result{}, fmt.Errorf("read the arguments of %s: %w", catalog.ResultRead, err)
	}
	r, err := t.opts.Results.Find(call.Context.User, in.Handle)
	if err != nil {
		return tool.Result{}, err
	}
	defer func() { _ = r.Close() }() // opened for reading only
	limit := int(maxPart)
	if in.Limit > 0 {
		limit = int(in.Limit)
	}
	if most := call.Context.MaxOutput; most > 0 { // the client's limit, perhaps lower
		limit = min(limit, max(int(most-noteSize), minPart))
	}
	where, err := find(ctx, r, in)
	if err != nil {
		return tool.Result{}, readError(in, err)
	}
	var text []byte
	var next int64
	var note string
	if in.Pattern != "" {
		var found found
		found, err = search(ctx, r, where, in, limit)
		text, next, note = found.text, found.next, found.lastLine(in, where)
	} else {
		text, next, err = part(r, where.to, where.cursor, limit)
		note = lastLine(r, in, where, next)
	}
	if err != nil {
		return tool.Result{}, readError(in, err)
	}
	facts := map[string]any{"handle": in.Handle, "cursor": where.cursor, "bytes": r.Size}
	if next < where.to {
		facts["next_cursor"] = next
	}
	content := []tool.Content{{Kind: tool.KindText, Data: text}}
	if r.Untrusted {
		content = pipeline.MarkUntrusted(content, "")
		facts["untrusted"] = true
	}
	return tool.Result{Content: append(content, tool.Text(note)), Metadata: facts}, nil
}

// find returns the span that the arguments select.
func find(ctx context.Context, r *results.Result, in readInput) (span, error) {
	where := span{to: r.Size, cursor: int64(in.Cursor)}
	if in.Line > 0 && in.Cursor > 0 {
		return span{}, tool.Errorf(tool.InvalidArgument, "line and cursor both say where to start").WithHint("give one of them")
	}
	if where.cursor > r.Size {
		return span{}, tool.Errorf(tool.InvalidArgument, "cursor: %d is beyond the end of the result, expected 0 to %d", where.cursor, r.Size).
			WithHint("the whole begins with %s", pipeline.ReadOn(in.Handle, 0))
	}
	if in.Select != nil {
		var err error
		if where.from, where.to, err = selected(ctx, r, r.Size, *in.Select); err != nil {
			return span{}, err
		}
		where.cursor = min(max(where.cursor, where.from), where.to)
	}
	if in.Line > 0 {
		at, lines, err := offsetOfLine(ctx, r, where, int64(in.Line))
		if err != nil {
			return span{}, err
		}
		if at < 0 {
			return span{}, tool.Errorf(tool.InvalidArgument, "line: %d is beyond the end of the result, which has %d lines", int64(in.Line), lines).
				WithHint("give a line from 1 to %d", max(lines, 1))
		}
		where.cursor = at
	}
	return where, nil
}

// readError turns an error of a read into one that tells the model which argument to change.
func readError(in readInput, err error) error {
	if _, ok := errors.AsType[*tool.Error](err); ok {
		return err
	}
	return tool.Errorf(tool.Unavailable, "the result %s cannot be read", in.Handle).WithCause(err).
		WithHint("make the call that had it again")
}

// part reads at most limit bytes of text before the byte to. It returns whole
// characters, with U+FFFD for invalid bytes. next is the start of the next part.
func part(r io.ReaderAt, to, cursor int64, limit int) (text []byte, next int64, err error) {
	data := make([]byte, min(int64(limit+utf8.UTFMax), to-cursor))
	if n, err := r.ReadAt(data, cursor); n < len(data) && err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the file was truncated
		}
		return nil, 0, err
	}
	last := cursor+int64(len(data)) == to
	text = make([]byte, 0, min(limit, len(data)))
	lines := 0
	for used := 0; used < len(data); {
		char, width := utf8.DecodeRune(data[used:])
		if len(text)+utf8.RuneLen(char) > limit || lines == maxPartLines || !last && !utf8.FullRune(data[used:]) {
			return text, cursor + int64(used), nil
		}
		text = utf8.AppendRune(text, char)
		used += width
		if char == '\n' {
			lines++
		}
	}
	return text, cursor + int64(len(data)), nil
}

// lastLine reports which part was read and how to read the next one.
func lastLine(r *results.Result, in readInput, read span, next int64) string {
	where := fmt.Sprintf("[bytes %d to %d of %d; ", read.cursor, next, r.Size)
	switch {
	case next < read.to:
		return where + "the rest: " + in.next(next) + "]"
	case read.to < r.Size:
		return where + "this was the end of what you selected]"
	case r.Size < r.Whole:
		return where + fmt.Sprintf("this was the end of what is kept: the whole had %d bytes, which is too long to be kept]", r.Whole)
	}
	return where + "this was the end]"
}
