package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
