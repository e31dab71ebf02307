package main

import (
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxEdit is the size up to which a file can be edited, before and after.
const maxEdit = 8 << 20

// maxMatches is how many times one text can be replaced.
const maxMatches = 100_000

// replacement is one edit: the text old becomes new.
type replacement struct {
	Old string `json:"old" jsonschema:"the text to replace, as it is in the file; whole lines are best" alias:"old_string"`
	New string `json:"new" jsonschema:"the text to put there instead; empty to delete" alias:"new_string"`
	All bool   `json:"replace_all,omitempty" jsonschema:"replace every occurrence; without it there must be exactly one"`
}

// match is where a text was found, and what takes its place.
type match struct {
	start, end int
	text       string
}

// tolerance is how a text was found.
type tolerance int

const (
	exactly tolerance = iota
	despiteSpaces
	despiteIndentation
)

// note says what was not exact, for a model.
func (t tolerance) note() string {
	switch t {
	case despiteSpaces:
		return "ignoring spaces at line ends"
	case despiteIndentation:
		return "ignoring indentation; the new text was indented like the old"
	case exactly:
	}
	return ""
}

// find returns where r.Old is in text, in order and not overlapping, by the
// least tolerance that finds it. It stops after one more than maxMatches, or
// when the new text is larger than a file may be.
func (r replacement) find(text string) ([]match, tolerance) {
	if found := r.findExactly(text); len(found) > 0 {
		return found, exactly
	}
	all := splitLines(text)
	for _, how := range []tolerance{exactly, despiteSpaces, despiteIndentation} {
		if found := r.findLines(all, how); len(found) > 0 {
			return found, how
		}
	}
	return nil, exactly
}

// findExactly finds old as it is, and if there is none with the line ends of
// the text.
func (r replacement) findExactly(text string) []match {
	style := eolOf(text)
	as := r.New
	if style == "\r\n" {
		as = fitEOL(as, style)
	}
	if found := findAll(text, r.Old, as); len(found) > 0 {
		return found
	}
	if old := fitEOL(r.Old, style); old != r.Old {
		return findAll(text, old, fitEOL(r.New, style))
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

// eolOf returns the line end of a text that has only one kind, else "".
func eolOf(text string) string {
	all, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	switch {
	case all > 0 && crlf == all:
		return "\r\n"
	case all > 0 && crlf == 0:
		return "\n"
	default:
		return ""
	}
}

// fitEOL gives text the line ends of the style, if there is one.
func fitEOL(text, style string) string {
	switch style {
	case "\r\n":
		return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	case "\n":
		return strings.ReplaceAll(text, "\r\n", "\n")
	default:
		return text
	}
}

// applied is what an edit did.
type applied struct {
	count int
	line  int // of the first, counted from 1 in the text before
	how   tolerance
}

// apply makes the replacement in text.
func (r replacement) apply(path, text string) (string, applied, error) {
	switch r.Old {
	case "":
		return "", applied{}, tool.Errorf(tool.InvalidArgument, "the text to replace is empty").
			WithHint("give the text that is there; use write_file to write or append")
	case r.New:
		return "", applied{}, tool.Errorf(tool.InvalidArgument, "the old and the new text are the same")
	}
	found, how := r.find(text)
	if len(found) == 0 {
		return "", applied{}, missed(path, text, r.Old)
	}
	if len(found) > 1 && !r.All {
		return "", applied{}, ambiguous(path, text, found)
	}
	if len(found) > maxMatches {
		return "", applied{}, tool.Errorf(tool.ResourceExhausted, "The text to replace is in %s more than %d times", tool.VisibleName(path), maxMatches)
	}
	size, ends := len(text), strings.Count(text, "\n")
	for _, m := range found {
		size += len(m.text) - (m.end - m.start)
		ends += strings.Count(m.text, "\n") - strings.Count(text[m.start:m.end], "\n")
	}
	switch {
	case size > maxEdit:
		return "", applied{}, tool.Errorf(tool.ResourceExhausted, "%s would have %d bytes, at most %d are possible", tool.VisibleName(path), size, maxEdit)
	case ends > maxLines:
		return "", applied{}, tool.Errorf(tool.ResourceExhausted, "%s would have %d lines, at most %d are possible", tool.VisibleName(path), ends, maxLines)
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
	return b.String(), applied{len(found), lineAt(text, found[0].start), how}, nil
}

// lineAt returns the number of the line that the byte belongs to.
func lineAt(text string, at int) int { return strings.Count(text[:at], "\n") + 1 }

// keepLastEnd gives after the line end that before had at its end.
func keepLastEnd(before, after string) string {
	if after == "" || !strings.HasSuffix(before, "\n") || strings.HasSuffix(after, "\n") {
		return after
	}
	if strings.HasSuffix(before, "\r\n") {
		return strings.TrimSuffix(after, "\r") + "\r\n"
	}
	return after + "\n"
}
