package grep

import (
	"fmt"
	"math"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/page"
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
	cut    bool // the budget has no room for more

	files, matchedFiles, matches int
	binary, unreadable, secrets  int
	leftOut                      string      // how many files with secrets were left out, or ""
	notes                        *page.Notes // files that were not searched
	notesRoom                    int
}

func newReport(q Query, budget int) *report {
	room := page.NotesRoom(budget)
	return &report{mode: q.Mode, budget: max(budget-page.NoteRoom-room, 0), notesRoom: room, left: q.MaxResults}
}

// hits returns what collects the matches of one file.
func (r *report) hits(q Query) *hits {
	if r.mode == "content" {
		return &hits{before: q.Before, after: q.After, limit: q.MaxResults, room: r.budget + 1}
	}
	return &hits{limit: math.MaxInt, first: r.mode == "files_with_matches"}
}

// add adds the matches of one file.
func (r *report) add(path string, found *hits) {
	if r.left == 0 {
		r.full = true
		return
	}
	r.matchedFiles++
	switch r.mode {
	case "files_with_matches":
		r.write(display.VisibleName(path) + "\n")
		r.left--
	case "count":
		r.matches += found.matches
		r.write(fmt.Sprintf("%s: %d\n", display.VisibleName(path), found.matches))
		r.left--
	default:
		found.trim(r.left)
		r.addLines(path, found)
	}
}

// addLines adds the lines of one file below its name.
func (r *report) addLines(path string, found *hits) {
	header := display.VisibleName(path) + "\n"
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
		r.full, r.cut = true, true
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
	if r.secrets > 0 {
		result.Metadata["sensitive_left_out"] = r.secrets
	}
	if r.full {
		result.Metadata["more"] = true
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

// note says how to get the remaining results. A larger max_results helps only if that was
// the bound.
func (r *report) note() string {
	if r.cut {
		return "[there are more than fit the output; narrow the pattern, the path or the globs]"
	}
	return "[there are more; narrow the pattern, the path or the globs, or raise max_results]"
}
