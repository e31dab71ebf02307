// Package patch parses patches: unified diffs of git and diff, and the form that begins
// with "*** Begin Patch". It returns the files that a patch names and the changes of
// their lines. It reads and changes no file.
//
// Models write patches by hand and count badly. If the numbers in the header of a hunk
// disagree with its lines, the lines count. Anything else that is ambiguous is an error
// with the line of the patch: a patch is never parsed in part.
//
// Errors are of type [*tool.Error], written for a model.
package patch

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// Bounds of one patch.
const (
	// MaxBytes is the maximum length of the text.
	MaxBytes = 4 << 20
	// MaxFiles is the maximum number of files.
	MaxFiles = 100
	// MaxHunks is the maximum number of hunks of all files together.
	MaxHunks = 2000
)

// Operation is what a patch does to a file.
type Operation string

// The closed list of operations.
const (
	Update Operation = "update"
	Create Operation = "create"
	Delete Operation = "delete"
	Rename Operation = "rename"
)

// File is the part of a patch about one file.
type File struct {
	// Line is the line of the patch where it begins, counted from 1.
	Line int
	// Operation is what the patch does to the file.
	Operation Operation
	// Old is the path before, "" for [Create]; New is the path after, "" for
	// [Delete]. They are the same for [Update], unless the patch has two names and
	// does not declare a rename.
	Old, New string
	// Mode is the new mode, 0o644 or 0o755, or 0 if the patch has none.
	Mode fs.FileMode
	// Hunks are the changes in the file, in order.
	Hunks []Hunk
	// EndKept means that the patch cannot describe whether the last line has a line
	// end, so the file keeps it.
	EndKept bool
}

// Hunk is a region of a file before and after.
type Hunk struct {
	// Line is where it begins in the patch, counted from 1.
	Line int
	// Start is the line of the file in the header of the hunk, counted from 1; 0 if
	// there is none.
	Start int
	// Within lists lines of the file that precede the hunk, in order.
	Within []string
	// AtEnd means that the hunk is at the end of the file.
	AtEnd bool
	// Lines are the lines of the hunk.
	Lines []Line
}

// Line is a line of a hunk.
type Line struct {
	// Kind is ' ' for an unchanged line, '-' for a removed line and '+' for an added
	// line.
	Kind byte
	// Text is the line without its line feed.
	Text string
	// Open means that the line has no line end.
	Open bool
}

// Old returns the lines before the change.
func (h *Hunk) Old() []Line { return h.without('+') }

// New returns the lines after the change.
func (h *Hunk) New() []Line { return h.without('-') }

func (h *Hunk) without(kind byte) []Line {
	var lines []Line
	for _, l := range h.Lines {
		if l.Kind != kind {
			lines = append(lines, l)
		}
	}
	return lines
}

// Paths returns every path of the files, each once.
func Paths(files []File) []string {
	var paths []string
	for _, f := range files {
		for _, path := range []string{f.Old, f.New} {
			if path != "" && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// Parse parses a patch. Text that is not a complete patch in either form is
// [tool.InvalidArgument], and a patch that exceeds the bounds is
// [tool.ResourceExhausted].
func Parse(text string) ([]File, error) {
	if len(text) > MaxBytes {
		return nil, tool.Errorf(tool.ResourceExhausted, "The patch has %d bytes, the maximum is %d", len(text), MaxBytes).WithHint("split the patch")
	}
	r := newReader(text)
	for r.more() && r.trimmed() == "" {
		r.at++
	}
	read := r.unified
	switch first := r.trimmed(); {
	case first == beginPatch:
		read = r.beginPatch
	case !r.more():
		return nil, tool.Errorf(tool.InvalidArgument, "The patch is empty").WithHint("%s", forms)
	case slices.ContainsFunc(sections(), func(s string) bool { return strings.HasPrefix(first, s) }):
		return nil, r.wrong("expected %q before it", beginPatch)
	}
	if err := read(); err != nil {
		return nil, err
	}
	return r.files, nil
}

// forms describes the forms of a patch.
const forms = `a patch is a unified diff, with the lines "--- a/file", "+++ b/file" and "@@ -1,3 +1,4 @@" before the changed lines, or it begins with "*** Begin Patch" and a line such as "*** Update File: file"`

// reader reads a patch line by line.
type reader struct {
	lines []string // without line feeds
	first int      // the number of the first of them
	at    int
	files []File
	hunks int
}

// newReader removes what surrounds a patch in a chat: the fence of a code block, and
// carriage returns in every line.
func newReader(text string) *reader {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if !slices.ContainsFunc(lines, func(l string) bool { return !strings.HasSuffix(l, "\r") }) {
		for i, l := range lines {
			lines[i] = strings.TrimSuffix(l, "\r")
		}
	}
	r := &reader{lines: lines, first: 1}
	start := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" })
	if start >= 0 && strings.HasPrefix(lines[start], "```") {
		r.lines, r.first = lines[start+1:], start+2
		if end := slices.Index(r.lines, "```"); end >= 0 {
			r.lines = r.lines[:end]
		}
	}
	return r
}

// more reports whether there is another line.
func (r *reader) more() bool { return r.at < len(r.lines) }

// line returns the current line; "" after the last one.
func (r *reader) line() string { return r.ahead(0) }

// trimmed returns the current line without trailing space.
func (r *reader) trimmed() string { return strings.TrimRight(r.line(), " \t\r") }

// ahead returns the line n lines ahead; "" after the last one.
func (r *reader) ahead(n int) string {
	if r.at+n < len(r.lines) {
		return r.lines[r.at+n]
	}
	return ""
}

// number returns the number of the current line.
func (r *reader) number() int { return r.first + r.at }

// wrong returns an error about the current line.
func (r *reader) wrong(format string, args ...any) *tool.Error {
	found := "its end"
	if r.more() {
		found = tool.VisibleName(fmt.Sprintf("%.80s", r.line()))
	}
	return wrongAt(r.number(), "found %s, "+format, append([]any{found}, args...)...)
}

// wrongAt returns an error about a line of the patch.
func wrongAt(number int, format string, args ...any) *tool.Error {
	text := tool.Errorf(tool.InvalidArgument, format, args...).Message
	return tool.Errorf(tool.InvalidArgument, "Line %d of the patch: %s", number, text).WithHint("%s; nothing was changed", forms)
}

// add adds a file.
func (r *reader) add(f File) error {
	if len(r.files) == MaxFiles {
		return tool.Errorf(tool.ResourceExhausted, "The patch changes more than %d files", MaxFiles).WithHint("split the patch")
	}
	r.files = append(r.files, f)
	return nil
}

// addHunk adds a hunk to a file.
func (r *reader) addHunk(f *File, h *Hunk) error {
	if r.hunks++; r.hunks > MaxHunks {
		return tool.Errorf(tool.ResourceExhausted, "The patch has more than %d hunks", MaxHunks).WithHint("split the patch")
	}
	f.Hunks = append(f.Hunks, *h)
	return nil
}
