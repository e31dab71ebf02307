package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxLimit is how many entries one result lists at most.
const maxLimit = 10_000

// pageArgs are the arguments of a tool that lists.
type pageArgs struct {
	Limit  int    `json:"limit,omitempty" jsonschema:"how many entries to return at most" default:"200"`
	Cursor string `json:"cursor,omitempty" jsonschema:"the next_cursor of an earlier result, to get what follows it; the other arguments must be the same"`
}

// page counts the entries of a list: those before it, those that it has room for.
type page struct {
	start, limit int
	seen         int
	shown        int
	room         int
	// more says that something follows.
	more bool
}

func (s *access) page(a pageArgs) (*page, error) {
	if a.Limit < 1 || a.Limit > maxLimit {
		return nil, tool.Errorf(tool.InvalidArgument, "limit is %d, expected 1 to %d", a.Limit, maxLimit)
	}
	p := &page{limit: a.Limit, room: s.budget - overhead}
	if a.Cursor == "" {
		return p, nil
	}
	start, err := strconv.Atoi(a.Cursor)
	if err != nil || start < 0 {
		return nil, badCursor(a.Cursor)
	}
	p.start = start
	return p, nil
}

func badCursor(cursor string) *tool.Error {
	return tool.Errorf(tool.InvalidArgument, "cursor %.40q is none that this tool gave", cursor).
		WithHint("use the next_cursor of the result before, or leave it out to begin")
}

// overhead is what a result takes beside its entries, at most.
const overhead = 1 << 10

// take reports whether an entry belongs to the page; size is what it takes.
func (p *page) take(size int) bool {
	p.seen++
	switch {
	case p.seen <= p.start:
		return false
	case p.more, p.shown == p.limit, p.shown > 0 && size > p.room:
		p.more = true
		return false
	}
	p.shown++
	p.room -= size
	return true
}

// next is the cursor of what follows, "" if nothing does.
func (p *page) next() string {
	if !p.more {
		return ""
	}
	return strconv.Itoa(p.start + p.shown)
}

// sizeOf is what a value takes in a result.
func sizeOf(value any) int {
	text, err := json.Marshal(value)
	if err != nil {
		return 0
	}
	return len(text) + 1
}

// jsonSize is what a text takes in JSON as encoding/json writes it.
func jsonSize(text string) int {
	size := len(text) + 2
	for i, c := range text {
		switch {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			size++
		case c < ' ', c == '<', c == '>', c == '&':
			size += 5
		case c == '\u2028', c == '\u2029': // ends of lines
			size += 3
		case c == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"): // a byte that is not UTF-8
			size += 5
		}
	}
	return size
}
