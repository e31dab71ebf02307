package main

import (
	"encoding/json"
	"strconv"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxLimit is the maximum number of entries in one result.
const maxLimit = 10_000

// pageArgs are the arguments of a tool that lists.
type pageArgs struct {
	Limit  int    `json:"limit,omitempty" jsonschema:"the maximum number of entries to return" default:"200"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the previous result, to continue; do not change the other arguments"`
}

// page selects the entries of a list that one result contains.
type page struct {
	start, limit int
	seen         int
	shown        int
	room         int
	// more is true if entries follow.
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
	return tool.Errorf(tool.InvalidArgument, "cursor is %.40q, expected next_cursor of an earlier result", cursor).
		WithHint("use next_cursor of the previous result, or omit cursor to start again")
}

// overhead is the maximum size of a result without its entries, in bytes.
const overhead = 1 << 10

// take counts the next entry and reports whether it belongs to the page. size is its
// size in the result in bytes.
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

// next returns the cursor of the entries that follow, or "" if there are none.
func (p *page) next() string {
	if !p.more {
		return ""
	}
	return strconv.Itoa(p.start + p.shown)
}

// sizeOf returns the size of a value in a result, in bytes.
func sizeOf(value any) int {
	text, err := json.Marshal(value)
	if err != nil {
		return 0
	}
	return len(text) + 1
}
