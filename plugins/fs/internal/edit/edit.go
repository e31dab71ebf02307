// Package edit locates text in the content of a file and replaces it: by the exact text,
// by lines that differ only in spaces or indentation, or by the hunks of a patch. An edit
// that could mean several places is an error, and the error shows the nearest text. The
// package reads and writes no files.
//
// Errors are of type [*tool.Error], written for a model.
package edit

import (
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// MaxBytes is the maximum size of a file that is edited, before and after.
const MaxBytes = 8 << 20

// maxMatches is how many times one text can be replaced.
const maxMatches = 100_000

// Replacement is one edit: the text Old becomes New.
type Replacement struct {
	Old string `json:"old" jsonschema:"text to replace" alias:"old_string"`
	New string `json:"new" jsonschema:"new text" alias:"new_string"`
	All bool   `json:"replace_all,omitempty" jsonschema:"all occurrences"`
}

// match is where a text was found, and its replacement.
type match struct {
	start, end int
	text       string
}

// Tolerance is how exactly a text was found.
type Tolerance int

// The tolerances, the least first.
const (
	Exactly Tolerance = iota
	despiteSpaces
	despiteIndentation
)

// Note tells a model what was not exact; it returns "" if everything was.
func (t Tolerance) Note() string {
	switch t {
	case despiteSpaces:
		return "ignoring spaces at line ends"
	case despiteIndentation:
		return "ignoring indentation; the new text was indented like the old"
	case Exactly:
	}
	return ""
}

// find returns where Old is in text, in order and without overlaps, with the least
// tolerance that finds it. It stops after maxMatches+1 matches, and when the new text
// exceeds the maximum size.
func (r Replacement) find(text string) ([]match, Tolerance) {
	if found := r.findExactly(text); len(found) > 0 {
		return found, Exactly
	}
	all := splitLines(text)
	for _, how := range []Tolerance{Exactly, despiteSpaces, despiteIndentation} {
		if found := r.findLines(all, how); len(found) > 0 {
			return found, how
		}
	}
	return nil, Exactly
}

// findExactly finds Old as it is, or else with the line ends of the text.
func (r Replacement) findExactly(text string) []match {
	style := textfile.LineEnds(text)
	as := r.New
	if style == "\r\n" {
		as = textfile.WithLineEnd(as, style)
	}
	if found := findAll(text, r.Old, as); len(found) > 0 {
		return found
	}
	if old := textfile.WithLineEnd(r.Old, style); old != r.Old {
		return findAll(text, old, textfile.WithLineEnd(r.New, style))
	}
	return nil
}

func findAll(text, old, as string) []match {
	var found []match
	for at := 0; len(found) <= maxMatches; {
		i := strings.Index(text[at:], old)
		if i < 0 {
			break
		}
		at += i + len(old)
		found = append(found, match{at - len(old), at, as})
	}
	return found
}

// Applied describes what an edit did.
type Applied struct {
	Count int
	Line  int // of the first replacement, from 1, in the text before
	How   Tolerance
}

// Apply replaces Old by New in text. path names the file in errors.
func (r Replacement) Apply(path, text string) (string, Applied, error) {
	switch r.Old {
	case "":
		return "", Applied{}, tool.Errorf(tool.InvalidArgument, "the text to replace is empty").
			WithHint("give the text that is there; use write_file to write or append")
	case r.New:
		return "", Applied{}, tool.Errorf(tool.InvalidArgument, "the old and the new text are the same")
	}
	found, how := r.find(text)
	if len(found) == 0 {
		return "", Applied{}, missed(path, text, r.Old)
	}
	if len(found) > 1 && !r.All {
		return "", Applied{}, ambiguous(path, text, found)
	}
	if len(found) > maxMatches {
		return "", Applied{}, tool.Errorf(tool.ResourceExhausted, "The text to replace is in %s more than %d times", display.VisibleName(path), maxMatches)
	}
	size, ends := len(text), strings.Count(text, "\n")
	for _, m := range found {
		size += len(m.text) - (m.end - m.start)
		ends += strings.Count(m.text, "\n") - strings.Count(text[m.start:m.end], "\n")
	}
	switch {
	case size > MaxBytes:
		return "", Applied{}, tool.Errorf(tool.ResourceExhausted, "%s would have %d bytes, the maximum is %d", display.VisibleName(path), size, MaxBytes)
	case ends > MaxLines:
		return "", Applied{}, tool.Errorf(tool.ResourceExhausted, "%s would have %d lines, the maximum is %d", display.VisibleName(path), ends, MaxLines)
	}
	var b strings.Builder
	b.Grow(size)
	at := 0
	for _, m := range found {
		b.WriteString(text[at:m.start])
		b.WriteString(m.text)
		at = m.end
	}
	b.WriteString(text[at:])
	return b.String(), Applied{len(found), lineAt(text, found[0].start), how}, nil
}

// lineAt returns the number of the line that has the byte.
func lineAt(text string, at int) int { return strings.Count(text[:at], "\n") + 1 }

// KeepLastEnd gives after the line end that before has at its end.
func KeepLastEnd(before, after string) string {
	if after == "" || !strings.HasSuffix(before, "\n") || strings.HasSuffix(after, "\n") {
		return after
	}
	if strings.HasSuffix(before, "\r\n") {
		return strings.TrimSuffix(after, "\r") + "\r\n"
	}
	return after + "\n"
}
