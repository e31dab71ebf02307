package grep

import (
	"fmt"
	"math"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// report is the growing result of a search.
type report struct {
	mode   string
	text   strings.Builder
	budget int
	left   int // how many more results fit
	full   bool
	next   sdk.Cursor // of the page after the results so far; "" before the first
	later  bool       // another page came before

	// total is how many results there are from here on; more than countTo are not counted.
	total, countTo int

	files, matchedFiles, matches int
	shown                        int // files
	binary, unreadable, secrets  int
	leftOut                      string      // how many files with secrets were left out, or ""
	notes                        *page.Notes // files that were not searched
	notesRoom                    int
}

func newReport(q Query, budget int) *report {
	room := page.NotesRoom(budget)
	return &report{mode: q.Mode, budget: max(budget-page.NoteRoom-room, 0), notesRoom: room, left: q.MaxResults, later: q.Cursor != "", countTo: q.countTo()}
}

// hits returns what collects the matches of one file. beyond means that they are only
// counted. from is the last line that was shown.
func (r *report) hits(q Query, beyond bool, from int) *hits {
	switch {
	case r.mode == "content":
		return &hits{before: q.Before, after: q.After, limit: q.MaxResults, room: r.budget + 1, more: beyond, from: from, countTo: r.countTo}
	case beyond:
		return &hits{first: true, limit: 1}
	}
	return &hits{limit: math.MaxInt, first: r.mode == "files_with_matches"}
}

// add adds the matches of one file.
func (r *report) add(file fileHits) {
	found := file.hits
	if r.left == 0 {
		r.full = true
		return
	}
	r.matchedFiles++
	switch r.mode {
	case "files_with_matches":
		r.addFile(file, display.VisibleName(file.path)+"\n")
	case "count":
		r.matches += found.matches
		r.addFile(file, fmt.Sprintf("%s: %d\n", display.VisibleName(file.path), found.matches))
	default:
		found.trim(r.left)
		r.addLines(file, found)
	}
}

// addFile adds one line about a file.
func (r *report) addFile(file fileHits, text string) {
	if r.write(text) {
		r.shown++
		r.next = place(file.rel, 0)
		r.left--
	}
}

// addLines adds the lines of one file below its name.
func (r *report) addLines(file fileHits, found *hits) {
	header := display.VisibleName(file.path) + "\n"
	if r.text.Len() > 0 {
		header = "\n" + header
	}
	last := 0
	for _, line := range found.lines {
		mark := "-"
		if line.matched {
			mark = ":"
		}
		text := fmt.Sprintf("%d%s %s\n", line.number, mark, line.text)
		if last > 0 && line.number > last+1 && (found.before > 0 || found.after > 0) {
			text = "--\n" + text
		}
		if !r.write(header + text) {
			return
		}
		header, last = "", line.number
		r.next = place(file.rel, last)
		if line.matched {
			r.matches++
			r.left--
		}
	}
	r.full = r.full || found.more
}

// write adds text if it fits.
func (r *report) write(text string) bool {
	if r.full {
		return false
	}
	if r.text.Len()+len(text) > r.budget {
		r.full = true
		return false
	}
	r.text.WriteString(text)
	return true
}

func (r *report) result() tool.Result {
	text := strings.TrimSuffix(r.text.String(), "\n")
	result := tool.TextResult(text)
	switch {
	case text == "":
		result = tool.TextResult(r.nothing())
	case r.leftOut != "":
		result.Content = append(result.Content, tool.Text("["+r.leftOut+"]"))
	}
	result.Metadata = map[string]any{
		"files_searched": r.files, "files_matched": r.matchedFiles,
		"skipped_binary": r.binary, "skipped_unreadable": r.unreadable,
	}
	if r.mode != "files_with_matches" {
		result.Metadata["matches"] = r.matches
	}
	if !r.later && r.total <= r.countTo {
		result.Metadata["total"] = r.total
	}
	if r.secrets > 0 {
		result.Metadata["sensitive_left_out"] = r.secrets
	}
	if r.full {
		result.Metadata["more"] = true
		if r.next != "" {
			result.Metadata[sdk.NextCursor] = r.next
		}
		result.Content = append(result.Content, tool.Text(r.note()))
	}
	if len(r.notes.Kept) > 0 {
		result.Metadata["incomplete"] = true
	}
	return page.WithNotes(result, r.notes, r.notesRoom)
}

// nothing reports that there are no matches, and names what is never searched.
func (r *report) nothing() string {
	text := "nothing found"
	if r.binary > 0 {
		text += fmt.Sprintf("; binary files, which are not searched: %d", r.binary)
	}
	if r.leftOut != "" {
		text += "; " + r.leftOut
	}
	return "[" + text + "]"
}

// note says how many results there are, and how to get the others.
func (r *report) note() string {
	if r.next == "" {
		return "[the first result does not fit the output; narrow the pattern, the path or the globs]"
	}
	shown, what := r.matches, "matches"
	if r.mode != "content" {
		shown, what = r.shown, "files"
	}
	of := fmt.Sprint(r.total)
	if r.total > r.countTo {
		of = fmt.Sprintf("more than %d", r.countTo)
	}
	if r.later {
		of = "the last " + of
	}
	return r.next.Note(fmt.Sprintf("%d of %s %s", shown, of, what))
}
