package edit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"

	"github.com/toolhost/toolhost/sdk/patch"
	"github.com/toolhost/toolhost/sdk/tool"
)

// hunkWriter is the text of a file as the hunks of a patch change it.
type hunkWriter struct {
	*hunkFinder
	out strings.Builder
	// lineEnd is what new lines end with; verbatim says that they bring the
	// carriage return themselves, if there is one.
	lineEnd  string
	verbatim bool
	copied   int // how many lines of the file are in out, or went
	notes    []string
}

// ApplyHunks makes the changes of a patch in the text of a file. The notes say where
// hunks stood elsewhere than they said, or were not quite the same.
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
		return "", nil, tool.Errorf(tool.ResourceExhausted, "%s would have %d bytes or more, at most %d are possible", tool.VisibleName(path), len(after), MaxBytes)
	}
	return finish(text, after, w.end(), reachesEnd && !f.EndKept, &last), w.notes, nil
}

// end is the line end that is added where one is missing.
func (w *hunkWriter) end() string {
	if w.verbatim && textfile.LineEnds(w.text) == "\r\n" {
		return "\r\n"
	}
	return w.lineEnd
}

// newLineEnd decides how new lines end: as those of the file, unless the patch
// has line ends of its own. It has if carriage returns are in it, and they are
// not only what a program on the way has put into every line.
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

// note says where a hunk stood, if that is not what it said.
func (w *hunkWriter) note(n int, at hunkPlace) {
	if at.shift != 0 {
		w.notes = append(w.notes, fmt.Sprintf("hunk %d at line %d, not %d", n, at.first+1, at.first+1-at.shift))
	}
	if how := at.how.Note(); how != "" {
		w.notes = append(w.notes, fmt.Sprintf("hunk %d %s", n, how))
	}
}

// copyTo copies the lines of the file before the given one.
func (w *hunkWriter) copyTo(first int) {
	for ; w.copied < first; w.copied++ {
		w.put(w.whole(w.copied))
	}
}

// put adds a line after those that there are, each of which must have ended.
func (w *hunkWriter) put(line string) {
	if text := w.out.String(); text != "" && !strings.HasSuffix(text, "\n") {
		w.out.WriteString(w.end())
	}
	w.out.WriteString(line)
}

// replace adds the lines of a hunk: those that stay as the file has them.
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

// newLine returns a line that comes, with its line end.
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

// finish gives the new text its last line end, or takes it: as the last hunk
// says, if it reaches the end of the file and says something; else as the file
// had it.
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
