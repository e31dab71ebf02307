package sdk

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Cursor says where a result that is too long for one call continues: a position, and the thing
// that it is a position in. "" means the start of a result, and in next_cursor its end.
//
// A tool that returns its result in parts embeds [Paged] in its arguments, and has
// next_cursor in its result: as a field of type Cursor, in the metadata, or both. The
// text of the result ends with [Cursor.Note].
type Cursor string

// Paged are the arguments of a tool that returns its result in parts.
type Paged struct {
	Cursor Cursor `json:"cursor,omitempty" jsonschema:"the last next_cursor"`
}

// NextCursor is the name of the next part's cursor in a result and its metadata.
const NextCursor = "next_cursor"

// maxCursor is the maximum length of a cursor in bytes.
const maxCursor = 256

var errCursor = errors.New("expected next_cursor of the previous result, or no cursor to start again")

// CursorAt returns the cursor of the part that begins at a position, in units of the tool. of
// identifies the thing that the position is in, such as a commit or a digest of the preceding
// part; it is "" if the arguments of the call identify it, and has no spaces.
func CursorAt(at int64, of string) Cursor {
	if of != "" {
		of = "-" + of
	}
	if at == 0 && of == "" {
		return ""
	}
	return Cursor(strconv.FormatInt(at, 10) + of)
}

// Position returns the arguments of [CursorAt].
func (c Cursor) Position() (at int64, of string) {
	text, of, _ := strings.Cut(string(c), "-")
	at, _ = strconv.ParseInt(text, 10, 64) // UnmarshalText has checked it
	return at, of
}

// UnmarshalText implements [encoding.TextUnmarshaler]. It refuses what cannot be a
// cursor.
func (c *Cursor) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*c = ""
		return nil
	}
	digits, of, found := strings.Cut(string(text), "-")
	at, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || at < 0 || found && of == "" || len(text) > maxCursor || strings.ContainsFunc(of, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errCursor
	}
	*c = CursorAt(at, of)
	return nil
}

// Note returns the line that tells a model how to get the next part, or "" if c is "". what
// describes the result, such as "links 1-100 of 250"; it may be "".
func (c Cursor) Note(what string) string {
	if c == "" {
		return ""
	}
	if what == "" {
		what = "more follows"
	}
	return fmt.Sprintf("[%s; continue with cursor=%q]", what, string(c))
}

// Refuse returns the error for a cursor that does not belong to the call.
func (c Cursor) Refuse() *tool.Error {
	return tool.Errorf(tool.InvalidArgument, "cursor is %q, which does not belong to this call", string(c)).
		WithHint("use next_cursor of the previous result with the same arguments, or omit cursor to start again")
}
