package edit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/patch"
	"github.com/toolhost/toolhost/sdk/tool"
)

// hunkWriter writes the text of a file with the changes of a patch.
type hunkWriter struct {
	*hunkFinder
	out strings.Builder
	// lineEnd is the end of added lines; verbatim means that they keep their own carriage
	// returns.
	lineEnd  string
	verbatim bool
	copied   int // lines of the file that were copied or removed
	notes    []string
}

// ApplyHunks applies the hunks of a patch to the text of a file. The notes say which
// hunks were found at another line, or were not exactly equal.
func ApplyHunks(ctx context.Context, path, text string, f *patch.File) (after string, notes []string, err error) {
	w := &hunkWriter{hunkFinder: newHunkFinder(path, text, f.Hunks)}
	w.lineEnd, w.verbatim = newLineEnd(text, f)
	w.out.Grow(len(text))
	var last patch.Hunk
	for i := range f.Hunks {
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		h := &f.Hunks[i]
		at, err := w.find(i+1, h)
		if err != nil {
			return "", nil, err
		}
		w.note(i+1, at)
		w.copyTo(at.first)
		w.replace(h, at)
		last = *h
		if w.out.Len() > MaxBytes {
			break
		}
	}
	reachesEnd := len(f.Hunks) > 0 && w.copied == w.count()
	w.copyTo(w.count())
	after = w.out.String()
	if len(after) > MaxBytes {
		return "", nil, tool.Errorf(tool.ResourceExhausted, "%s would have %d bytes or more, the maximum is %d", display.VisibleName(path), len(after), MaxBytes)
	}
	return finish(text, after, w.end(), reachesEnd && !f.EndKept, &last), w.notes, nil
}

// end returns the line end to add where one is missing.
func (w *hunkWriter) end() string {
	if w.verbatim && textfile.LineEnds(w.text) == "\r\n" {
		return "\r\n"
	}
	return w.lineEnd
}

// newLineEnd decides how added lines end: like the lines of the file, unless the patch
// has its own line ends. Carriage returns in every line of the patch do not count: a
// program has added them on the way.
func newLineEnd(text string, f *patch.File) (end string, verbatim bool) {
	returns, without := false, false
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			has := strings.HasSuffix(l.Text, "\r")
			returns = returns || has
			without = without || !has && l.Kind != '+'
		}
	}
	style := textfile.LineEnds(text)
	switch {
	case returns && !without && style == "\n":
		return "\n", false
	case returns:
		return "\n", true
	case style == "\r\n":
		return style, false
	default:
		return "\n", false
	}
}

// note records where a hunk was found, if not at the line in its header.
func (w *hunkWriter) note(n int, at hunkPlace) {
	if at.shift != 0 {
		w.notes = append(w.notes, fmt.Sprintf("hunk %d at line %d, not %d", n, at.first+1, at.first+1-at.shift))
	}
	if how := at.how.Note(); how != "" {
		w.notes = append(w.notes, fmt.Sprintf("hunk %d %s", n, how))
	}
}

// copyTo copies the lines of the file before line first.
func (w *hunkWriter) copyTo(first int) {
	for ; w.copied < first; w.copied++ {
		w.put(w.whole(w.copied))
	}
}

// put adds a line. It ends the previous line first if that has no line end.
func (w *hunkWriter) put(line string) {
	if text := w.out.String(); text != "" && !strings.HasSuffix(text, "\n") {
		w.out.WriteString(w.end())
	}
	w.out.WriteString(line)
}

// replace adds the lines of a hunk. Unchanged lines are copied from the file.
func (w *hunkWriter) replace(h *patch.Hunk, at hunkPlace) {
	for _, l := range h.Lines {
		switch l.Kind {
		case ' ':
			w.copyTo(w.copied + 1)
		case '-':
			w.copied++
		default:
			w.put(w.newLine(l))
		}
	}
	w.copied = at.first + at.count
}

// newLine returns an added line with its line end.
func (w *hunkWriter) newLine(l patch.Line) string {
	text := l.Text
	if !w.verbatim {
		text = strings.TrimSuffix(text, "\r")
	}
	if l.Open {
		return text
	}
	return text + w.lineEnd
}

// finish adds or removes the last line end of the new text. If the last hunk reaches the end of
// the file and says so, it decides; otherwise the file keeps what it had.
func finish(before, after, lineEnd string, reachesEnd bool, last *patch.Hunk) string {
	isOpen := func(l patch.Line) bool { return l.Open }
	wanted := before == "" || strings.HasSuffix(before, "\n")
	if says := slices.ContainsFunc(last.Lines, isOpen); reachesEnd && says {
		wanted = !slices.ContainsFunc(last.New(), isOpen)
	}
	has := strings.HasSuffix(after, "\n")
	switch {
	case after == "" || has == wanted:
		return after
	case wanted:
		return after + lineEnd
	default:
		return strings.TrimSuffix(strings.TrimSuffix(after, "\n"), "\r")
	}
}
