package config

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// Mistake is one mistake in a configuration.
type Mistake struct {
	// File is the path of the file, as given to [Load].
	File string `json:"file"`
	// Line and Column are where it begins, counted from 1.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Summary names the kind of mistake in a few words.
	Summary string `json:"summary"`
	// Detail describes what was expected. It suggests a name if one is near.
	Detail string `json:"detail"`
	// Source is the line of the file.
	Source string `json:"source"`
	// Width is the number of characters to mark in that line, at least 1.
	Width int `json:"width"`
}

// Place returns the file and the line, e.g. "config.hcl:12".
func (m Mistake) Place() string { return fmt.Sprintf("%s:%d", m.File, m.Line) }

// Error holds every mistake of a configuration, sorted by file and line; there
// is at least one. It encodes as JSON.
type Error struct {
	Mistakes []Mistake `json:"mistakes"`
}

// Error implements error. It returns the number of mistakes and the first one, in
// one line.
func (e *Error) Error() string {
	first := e.Mistakes[0]
	text := fmt.Sprintf("%s: %s: %s", first.Place(), first.Summary, first.Detail)
	if len(e.Mistakes) == 1 {
		return text
	}
	return fmt.Sprintf("%d mistakes; first: %s", len(e.Mistakes), text)
}

// WriteText writes every mistake for a person: its place and summary, the marked
// line, and the detail. With color it uses the escape sequences of a terminal.
func (e *Error) WriteText(w io.Writer, color bool) error {
	red, bold, reset := "\x1b[31m", "\x1b[1m", "\x1b[0m"
	if !color {
		red, bold, reset = "", "", ""
	}
	var b strings.Builder
	for _, m := range e.Mistakes {
		fmt.Fprintf(&b, "%s%s:%d:%d: %s%s\n", bold, m.File, m.Line, m.Column, m.Summary, reset)
		gutter := fmt.Sprintf("%5d | ", m.Line)
		fmt.Fprintf(&b, "%s%s\n", gutter, m.Source)
		if m.Column <= utf8.RuneCountInString(m.Source)+1 { // otherwise the part is not shown
			fmt.Fprintf(&b, "%*s%s%s%s\n", len(gutter)+m.Column-1, "", red, strings.Repeat("^", m.Width), reset)
		}
		fmt.Fprintf(&b, "      %s\n\n", m.Detail)
	}
	if n := len(e.Mistakes); n > 1 {
		fmt.Fprintf(&b, "%d mistakes\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// newError returns the mistakes of diags as an error, or nil if there are none. It uses their
// texts only, with secrets hidden, and never the values that HCL would add.
func newError(diags hcl.Diagnostics, files map[string]*hcl.File, hide *secrets) error {
	if !diags.HasErrors() {
		return nil
	}
	e := &Error{}
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			e.Mistakes = append(e.Mistakes, newMistake(d, files, hide))
		}
	}
	e.sort()
	return e
}

// sort sorts the mistakes by file and line.
func (e *Error) sort() {
	slices.SortStableFunc(e.Mistakes, func(a, b Mistake) int {
		if a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}

func newMistake(d *hcl.Diagnostic, files map[string]*hcl.File, hide *secrets) Mistake {
	m := Mistake{Summary: hide.in(d.Summary), Detail: hide.in(d.Detail), Line: 1, Column: 1, Width: 1}
	if d.Subject == nil {
		return m
	}
	at := *d.Subject
	m.File, m.Line, m.Column = at.Filename, at.Start.Line, at.Start.Column
	if f := files[at.Filename]; f != nil {
		m.Source = sourceLine(f.Bytes, at.Start.Byte)
	}
	end := at.End.Column
	if length := utf8.RuneCountInString(m.Source); at.End.Line > at.Start.Line || end > length {
		end = length + 1
	}
	m.Width = max(1, end-m.Column)
	return m
}

// maxSourceLine bounds the shown part of a line, in bytes.
const maxSourceLine = 200

// sourceLine returns the line of src that holds the byte at offset. Tabs and other
// control characters become spaces, so that the mark below the line is aligned and
// a terminal gets no escape sequences.
func sourceLine(src []byte, offset int) string {
	offset = min(max(offset, 0), len(src))
	start := bytes.LastIndexByte(src[:offset], '\n') + 1
	line, _, _ := bytes.Cut(src[start:], []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) > maxSourceLine {
		line = append(line[:maxSourceLine:maxSourceLine], "..."...)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, string(line))
}

// Found is a mistake that [Load] cannot find, such as the name of a tool that no
// plugin has.
type Found struct {
	// Place is where it is, e.g. "config.hcl:12".
	Place string
	// Word is the wrong name. It is marked where it occurs in quotes, in that line or
	// the first later one; "" marks the line.
	Word string
	// Summary and Detail are those of a [Mistake].
	Summary, Detail string
}

// Mistaken returns an error like that of [Load] for mistakes that were found after
// loading. There must be at least one. The error shows no lines if the files have
// changed since.
func (c *Config) Mistaken(found []Found) *Error {
	lines := map[string][]string{}
	src := &source{}
	for _, name := range c.Files {
		text, err := readBounded(name, maxFileBytes)
		if err != nil {
			break // then the digest differs
		}
		src.files = append(src.files, sourceFile{name: name, bytes: text})
	}
	if src.digest() == c.Digest {
		for _, file := range src.files {
			lines[file.name] = strings.Split(string(file.bytes), "\n")
		}
	}
	e := &Error{}
	for _, f := range found {
		e.Mistakes = append(e.Mistakes, f.mistake(lines))
	}
	e.sort()
	return e
}

func (f Found) mistake(lines map[string][]string) Mistake {
	m := Mistake{File: f.Place, Line: 1, Column: 1, Width: 1, Summary: f.Summary, Detail: f.Detail}
	if i := strings.LastIndexByte(f.Place, ':'); i >= 0 {
		if n, err := strconv.Atoi(f.Place[i+1:]); err == nil && n > 0 {
			m.File, m.Line = f.Place[:i], n
		}
	}
	text := lines[m.File]
	if m.Line > len(text) {
		return m
	}
	at, word := 0, strconv.Quote(f.Word)
	for i, line := range text[m.Line-1:] {
		if f.Word == "" {
			break
		}
		if at = strings.Index(line, word); at >= 0 {
			m.Line, m.Width = m.Line+i, utf8.RuneCountInString(word)
			break
		}
	}
	line := text[m.Line-1]
	if at = max(at, 0); m.Width == 1 {
		at = len(line) - len(strings.TrimLeft(line, " \t"))
	}
	m.Source = sourceLine([]byte(line), 0)
	m.Column = utf8.RuneCountInString(line[:at]) + 1
	return m
}

// String returns the mistake in one line.
func (m Mistake) String() string { return fmt.Sprintf("%s: %s", m.Place(), m.Detail) }
