// Package page writes results that must fit a budget: lists in pages, with a cursor to
// continue, and notes about what is missing.
package page

import (
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

// NoteRoom is the part of the budget that is reserved for the note that says how to
// continue.
const NoteRoom = 200

// Args are the arguments of a tool that lists.
type Args struct {
	Limit int `json:"limit,omitempty" jsonschema:"entries to return" min:"1" default:"1000" alias:"head_limit"`
	sdk.Paged
}

// Listing is one page of a list, with one entry on a line.
type Listing struct {
	// Start is how many entries precede the page, and Limit how many it has at most.
	Start, Limit int
	// Full means that there are more entries than fit the page.
	Full   bool
	text   strings.Builder
	budget int
	shown  int
}

// NewListing returns an empty page. budget bounds the result with its notes, in bytes.
func NewListing(args Args, budget int) *Listing {
	start, _ := args.Cursor.Position()
	return &Listing{Start: int(start), Limit: args.Limit, budget: max(budget-NoteRoom-NotesRoom(budget), 0)}
}

// Add adds the line of an entry. It reports whether the line fitted.
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

// Result returns the page, with a note that says how to continue if the page is full.
// total is the number of entries, or -1 if it is not known; more means that there are
// more than total. empty is the text of an empty list.
func (l *Listing) Result(total int, more bool, empty string) tool.Result {
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
		fmt.Fprintf(&l.text, "[nothing at cursor=\"%d\": the list has %d entries now; start again without cursor]", l.Start, total)
	case l.shown == 0:
		l.text.WriteString(empty)
	}
	result := tool.TextResult(l.text.String())
	result.Metadata = facts
	if l.Full {
		next := l.Start + l.shown
		cursor := sdk.CursorAt(int64(next), "")
		facts[sdk.NextCursor] = cursor
		result.Content = append(result.Content, tool.Text(cursor.Note(fmt.Sprintf("%d-%d%s", l.Start+1, next, of))))
	}
	return result
}
