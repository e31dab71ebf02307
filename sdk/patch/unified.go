package patch

import (
	"regexp"
	"strconv"
	"strings"
)

// unified parses diffs of files. It skips other text between them, such as the message of
// a commit.
func (r *reader) unified() error {
	for r.more() {
		var err error
		switch line := r.line(); {
		case strings.HasPrefix(line, "diff --git "):
			err = r.gitFile()
		case r.atNames():
			err = r.plainFile()
		case strings.HasPrefix(line, "diff --cc "), strings.HasPrefix(line, "diff --combined "):
			err = r.wrong("a diff of a merge, which cannot be applied; expected a diff to one parent")
		case isBinary(line):
			err = r.wrong("expected text; use copy_file or move_file for a binary file")
		case r.trimmed() == beginPatch:
			err = r.wrong("after a unified diff; expected one form or the other")
		case strings.HasPrefix(line, "@@"):
			err = r.wrong(`expected the names of the file before it, as "--- a/file" and "+++ b/file"`)
		case strings.HasPrefix(line, "*** ") && strings.HasPrefix(r.ahead(1), "--- "):
			err = r.wrong("a context diff; expected a unified one, as of diff -u")
		default:
			r.at++
		}
		if err != nil {
			return err
		}
	}
	if len(r.files) == 0 {
		r.at = 0
		return r.wrong("and nowhere the names of a file")
	}
	return nil
}

// isBinary reports whether a line says that the diff leaves out a binary change.
func isBinary(line string) bool {
	return line == "GIT binary patch" || strings.HasPrefix(line, "Binary files ") && strings.HasSuffix(line, " differ")
}

// atNames reports whether the next two lines are the names of a file.
func (r *reader) atNames() bool {
	return strings.HasPrefix(r.line(), "--- ") && strings.HasPrefix(r.ahead(1), "+++ ")
}

// plainFile parses the diff of a file without a header of git.
func (r *reader) plainFile() error {
	f := File{Line: r.number(), Operation: Update}
	var err error
	if f.Old, f.New, err = r.names(); err != nil {
		return err
	}
	switch {
	case f.Old == "" && f.New == "":
		return wrongAt(f.Line, "no name of a file")
	case f.Old == "":
		f.Operation = Create
	case f.New == "":
		f.Operation = Delete
	}
	if !strings.HasPrefix(r.line(), "@@") {
		return r.wrong("expected a hunk, which begins with @@")
	}
	if err := r.unifiedHunks(&f); err != nil {
		return err
	}
	return r.add(f)
}

// unifiedHunks parses the hunks of a file.
func (r *reader) unifiedHunks(f *File) error {
	for strings.HasPrefix(r.line(), "@@") {
		h, err := r.hunk()
		if err != nil {
			return err
		}
		if err := r.addHunk(f, h); err != nil {
			return err
		}
	}
	return nil
}

// hunkHeader matches the line before a hunk: its place and its numbers of lines.
var hunkHeader = regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@`)

// hunk parses one hunk.
func (r *reader) hunk() (*Hunk, error) {
	if strings.HasPrefix(r.line(), "@@@") {
		return nil, r.wrong("a diff of a merge, which cannot be applied; expected a diff to one parent")
	}
	h := &Hunk{Line: r.number()}
	header := hunkHeader.FindStringSubmatch(r.line())
	if header == nil {
		if within := anchorOf(r.line()); within != "" {
			h.Within = []string{within}
		}
		r.at++
		return h, r.takeLines(h, r.recounted())
	}
	old, added := countIn(header[2]), countIn(header[4])
	if h.Start = countIn(header[1]); old == 0 {
		h.Start++ // no line goes: the number is that of the line before
	}
	r.at++
	end, ok := r.counted(old, added)
	if !ok {
		end = r.recounted()
	}
	return h, r.takeLines(h, end)
}

// countIn parses a number of a hunk's header; a missing one is 1.
func countIn(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 1
	}
	return n
}

// anchorOf returns the text of a line that begins with @@ and has no numbers.
func anchorOf(line string) string {
	text := strings.TrimSpace(strings.TrimPrefix(line, "@@"))
	text = strings.TrimSpace(strings.TrimSuffix(text, "@@"))
	if text == "..." {
		return ""
	}
	return text
}

// counted returns the end of a hunk with so many lines. It reports false if the lines
// disagree with the numbers.
func (r *reader) counted(old, added int) (end int, ok bool) {
	for end = r.at; old > 0 || added > 0; end++ {
		if end == len(r.lines) {
			return end, false
		}
		switch kindOf(r.lines[end]) {
		case ' ':
			old--
			added--
		case '-':
			old--
		case '+':
			added--
		case '\\':
		default:
			return end, false
		}
		if old < 0 || added < 0 {
			return end, false
		}
	}
	if end < len(r.lines) && kindOf(r.lines[end]) == '\\' {
		end++
	}
	goesOn := end < len(r.lines) && r.lines[end] != "" && kindOf(r.lines[end]) != 0 && !r.boundary(end)
	return end, !goesOn
}

// recounted returns the end of a hunk by its lines alone.
func (r *reader) recounted() int {
	end := r.at
	for end < len(r.lines) && kindOf(r.lines[end]) != 0 && !r.boundary(end) {
		end++
	}
	for end > r.at && strings.TrimRight(r.lines[end-1], "\r") == "" {
		end-- // blank lines after a patch do not belong to it
	}
	return end
}

// kindOf returns the first character of a line of a hunk, or 0. An empty line is an
// unchanged line that lost its space.
func kindOf(line string) byte {
	if line == "" || line == "\r" {
		return ' '
	}
	if strings.IndexByte(` -+\`, line[0]) >= 0 {
		return line[0]
	}
	return 0
}

// boundary reports whether the line cannot belong to the hunk before it: it begins
// another hunk or file, or a mail program added it.
func (r *reader) boundary(at int) bool {
	line := r.lines[at]
	if strings.HasPrefix(line, "--- ") && at+2 < len(r.lines) {
		return strings.HasPrefix(r.lines[at+1], "+++ ") && strings.HasPrefix(r.lines[at+2], "@@")
	}
	return line == "-- " || line == "--" && at+1 < len(r.lines) && kindOf(r.lines[at+1]) == 0
}

// takeLines parses the lines of a hunk up to end.
func (r *reader) takeLines(h *Hunk, end int) error {
	for ; r.at < end; r.at++ {
		line := r.line()
		kind := kindOf(line)
		switch {
		case kind != '\\':
			if line == "" || line == "\r" {
				line = " " + line
			}
			h.Lines = append(h.Lines, Line{Kind: kind, Text: line[1:]})
		case len(h.Lines) == 0:
			return r.wrong("expected a line of the file before it")
		default:
			h.Lines[len(h.Lines)-1].Open = true
		}
	}
	if len(h.Lines) == 0 {
		return r.wrong("expected the lines of the hunk, each with a space, - or + before it")
	}
	if strings.TrimSpace(r.line()) != "" && !r.mayFollow() {
		return r.wrong("expected a line that begins with a space, - or +, or the next hunk or file")
	}
	for _, side := range [][]Line{h.Old(), h.New()} {
		for i, l := range side {
			if l.Open && i < len(side)-1 {
				return wrongAt(h.Line, "a line of the hunk that has no line end is not the last")
			}
		}
	}
	return nil
}

// mayFollow reports whether the current line can follow a hunk. A line of the hunk that
// lost its first character cannot.
func (r *reader) mayFollow() bool {
	line := r.line()
	for _, start := range []string{"@@", "diff ", "Index: ", "index ", "=====", "Only in ", "From ", "Binary files ", "-- ", "--- ", "*** "} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return line == "--"
}
