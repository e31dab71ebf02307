// Package page writes results that must fit a budget: lists in pages, with a cursor to
// continue, and notes about what is missing.
package page

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxCursor is how far a list can be followed.
const maxCursor = 1 << 30

// Args are the arguments of a tool that lists.
type Args struct {
	Limit  int    `json:"limit,omitempty" jsonschema:"how many entries to return at most" min:"1" max:"10000" default:"1000"`
	Cursor string `json:"cursor,omitempty" jsonschema:"the next_cursor of an earlier result, to get what follows it; the other arguments must be the same"`
}

// NoteRoom is what is left of the budget for the note that says how to continue.
const NoteRoom = 200

// Page is a part of a list.
type Page struct{ Start, Limit int }

func (a Args) Page() (Page, error) {
	if a.Cursor == "" {
		return Page{Limit: a.Limit}, nil
	}
	start, err := strconv.Atoi(a.Cursor)
	if err != nil || start < 0 || start > maxCursor {
		return Page{}, tool.Errorf(tool.InvalidArgument, "cursor %.40q is none that this tool gave", a.Cursor).
			WithHint("use the next_cursor of the result before, or leave it out to begin")
	}
	return Page{start, a.Limit}, nil
}

// Listing is one item on a line, as far as page and budget go.
type Listing struct {
	Page
	text   strings.Builder
	budget int
	shown  int
	Full   bool
}

func NewListing(p Page, budget int) *Listing {
	return &Listing{Page: p, budget: max(budget-NoteRoom-NotesRoom(budget), 0)}
}

// Add appends the item's line. It reports whether there is room for more.
func (l *Listing) Add(line string) bool {
	l.Full = l.Full || l.shown == l.Limit || (l.shown > 0 && l.text.Len()+len(line)+1 > l.budget)
	if l.Full {
		return false
	}
	if l.shown > 0 {
		l.text.WriteByte('\n')
	}
	l.text.WriteString(line)
	l.shown++
	return true
}

// Result says how to go on if there is more than was shown. Total is how many
// items there are, or if there are more, how many were seen; -1 if neither is
// known.
func (l *Listing) Result(total int, more bool, empty string) tool.Result {
	next := l.Start + l.shown
	facts := map[string]any{"shown": l.shown}
	of := ""
	switch {
	case more:
		of = fmt.Sprintf(" of more than %d", total)
	case total >= 0:
		facts["total"] = total
		of = fmt.Sprintf(" of %d", total)
	}
	switch {
	case l.shown == 0 && l.Start > 0 && !l.Full:
		empty = fmt.Sprintf("[there is nothing at cursor=\"%d\": the list has %d entries now; begin again without a cursor]", l.Start, total)
		fallthrough
	case l.shown == 0:
		l.text.WriteString(empty)
	}
	result := tool.TextResult(l.text.String())
	result.Metadata = facts
	if l.Full {
		facts["next_cursor"] = strconv.Itoa(next)
		result.Content = append(result.Content, tool.Text(fmt.Sprintf("[%d-%d%s; continue with cursor=\"%d\"]", l.Start+1, next, of, next)))
	}
	return result
}
