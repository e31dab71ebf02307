package main

import (
	"encoding/json"

	"github.com/toolhost/toolhost/sdk"
)

// maxLimit is the maximum number of entries in one result.
const maxLimit = 10_000

// pageArgs are the arguments of a tool that lists.
type pageArgs struct {
	Limit int `json:"limit,omitempty" jsonschema:"most entries" min:"1" max:"10000" default:"200"`
	sdk.Paged
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

func (s *access) page(limit int, cursor sdk.Cursor) *page {
	start, _ := cursor.Position()
	return &page{start: int(start), limit: limit, room: s.budget - overhead}
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
func (p *page) next() sdk.Cursor {
	if !p.more {
		return ""
	}
	return sdk.CursorAt(int64(p.start+p.shown), "")
}

// sizeOf returns the size of a value in a result, in bytes.
func sizeOf(value any) int {
	text, err := json.Marshal(value)
	if err != nil {
		return 0
	}
	return len(text) + 1
}
