package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// headings copies a patch and adds a prefix to the paths in two kinds of headings, for
// which git has no option: those of combined diffs and of files in conflict. No line of
// a file's content in a patch starts like these headings.
type headings struct {
	to     io.Writer
	prefix string
	sides  map[string]int // for the words about files in conflict

	line []byte // the start of the current line while it may be a heading
	rest bool   // the current line is not a heading
}

// headings returns a writer that copies a patch to another writer and makes the paths in
// all headings relative to the workspace. For files in conflict without a combined diff, it
// adds what the sides did.
func (r *repository) headings(to io.Writer, sides map[string]int) io.Writer {
	h := &headings{to: to, sides: sides}
	if r.shown != "." {
		h.prefix = strings.TrimPrefix(r.shown, "/") + "/"
	}
	return h
}

// maxHeading is longer than any heading.
const maxHeading = 32 << 10

// Write implements [io.Writer].
func (h *headings) Write(data []byte) (int, error) {
	var out []byte
	for part := range bytes.Lines(data) {
		ends := part[len(part)-1] == '\n'
		if !h.rest {
			h.line = append(h.line, part...)
			switch {
			case !mayBeHeading(h.line) || len(h.line) > maxHeading:
				out, h.rest = append(out, h.line...), true
			case ends:
				out = h.appendHeading(out)
			default:
				continue
			}
			h.line = h.line[:0]
		} else {
			out = append(out, part...)
		}
		if ends {
			h.rest = false
		}
	}
	if _, err := h.to.Write(out); err != nil {
		return 0, err
	}
	return len(data), nil
}

// The prefixes of headings. Git quotes the path after combined, but not after unmerged.
const (
	combined = "diff --cc "
	unmerged = "* Unmerged path "
)

// mayBeHeading reports whether the start of a line may be the start of a heading.
func mayBeHeading(line []byte) bool {
	begins := func(heading string) bool {
		n := min(len(line), len(heading))
		return string(line[:n]) == heading[:n]
	}
	return begins(combined) || begins(unmerged)
}

// appendHeading appends the heading in h.line with the prefix.
func (h *headings) appendHeading(out []byte) []byte {
	line := string(h.line)
	if path, ok := strings.CutPrefix(line, unmerged); ok {
		path = strings.TrimSuffix(path, "\n")
		out = append(out, unmerged+h.prefix+path...)
		if words := sideWords[h.sides[path]]; words != "" {
			out = append(out, " ("+words+")"...)
		}
		return append(out, '\n')
	}
	path := strings.TrimSuffix(strings.TrimPrefix(line, combined), "\n")
	prefix := quoteForGit(h.prefix)
	if inner, quoted := strings.CutPrefix(path, `"`); quoted {
		path = `"` + prefix + inner
	} else if prefix != h.prefix {
		path = `"` + prefix + path + `"`
	} else {
		path = prefix + path
	}
	return append(out, combined+path+"\n"...)
}

// quoteForGit escapes a text as git does inside quotes.
func quoteForGit(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
