package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxCursor is how far a list can be followed.
const maxCursor = 1 << 30

// pageArgs are the arguments of a tool that lists.
type pageArgs struct {
	Limit  int    `json:"limit,omitempty" jsonschema:"how many entries to return at most" min:"1" max:"10000" default:"1000"`
	Cursor string `json:"cursor,omitempty" jsonschema:"the next_cursor of an earlier result, to get what follows it; the other arguments must be the same"`
}

// page is a part of a list.
type page struct{ start, limit int }

func (a pageArgs) page() (page, error) {
	if a.Cursor == "" {
		return page{limit: a.Limit}, nil
	}
	start, err := strconv.Atoi(a.Cursor)
	if err != nil || start < 0 || start > maxCursor {
		return page{}, tool.Errorf(tool.InvalidArgument, "cursor %.40q is none that this tool gave", a.Cursor).
			WithHint("use the next_cursor of the result before, or leave it out to begin")
	}
	return page{start, a.Limit}, nil
}

// listing is one item on a line, as far as page and budget go.
type listing struct {
	page
	text   strings.Builder
	budget int
	shown  int
	full   bool
}

func newListing(p page, budget int) *listing {
	return &listing{page: p, budget: max(budget-noteRoom-notesRoom(budget), 0)}
}

// add appends the item's line. It reports whether there is room for more.
func (l *listing) add(line string) bool {
	l.full = l.full || l.shown == l.limit || (l.shown > 0 && l.text.Len()+len(line)+1 > l.budget)
	if l.full {
		return false
	}
	if l.shown > 0 {
		l.text.WriteByte('\n')
	}
	l.text.WriteString(line)
	l.shown++
	return true
}

// result says how to go on if there is more than was shown. Total is how many
// items there are, or if there are more, how many were seen; -1 if neither is
// known.
func (l *listing) result(total int, more bool, empty string) tool.Result {
	next := l.start + l.shown
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
	case l.shown == 0 && l.start > 0 && !l.full:
		empty = fmt.Sprintf("[there is nothing at cursor=\"%d\": the list has %d entries now; begin again without a cursor]", l.start, total)
		fallthrough
	case l.shown == 0:
		l.text.WriteString(empty)
	}
	result := tool.TextResult(l.text.String())
	result.Metadata = facts
	if l.full {
		facts["next_cursor"] = strconv.Itoa(next)
		result.Content = append(result.Content, tool.Text(fmt.Sprintf("[%d-%d%s; continue with cursor=\"%d\"]", l.start+1, next, of, next)))
	}
	return result
}
