package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/users"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxQuery is how many bytes of a query are used; the rest is ignored.
const maxQuery = 16 << 10

type searchArgs struct {
	Query        string   `json:"query" jsonschema:"question or words"`
	TopK         int      `json:"top_k,omitempty" jsonschema:"most notes" min:"1" max:"20" default:"5" alias:"limit"`
	Conversation bool     `json:"include_conversation,omitempty" jsonschema:"with conversations" default:"false"`
	Category     string   `json:"category,omitempty" jsonschema:"only these notes" enum:"core,daily,conversation"`
	Tags         []string `json:"tags,omitempty" jsonschema:"all of these"`
	Since        string   `json:"since,omitempty" jsonschema:"date, time, or ago (7d)"`
	Until        string   `json:"until,omitempty" jsonschema:"like since"`
	Mode         string   `json:"mode,omitempty" jsonschema:"how to match" enum:"hybrid,vector,keyword" default:"hybrid"`
	Order        string   `json:"order,omitempty" jsonschema:"order" enum:"relevance,recent" default:"relevance"`
}

// hit is a note in the result of a search.
type hit struct {
	Text     string  `json:"text" jsonschema:"the text of the note; of a long note, the part that matches best"`
	Source   string  `json:"source" jsonschema:"who said it, or where the information comes from; empty if unknown"`
	Score    float64 `json:"score" jsonschema:"how well the note matches, relative to the other results"`
	NoteID   string  `json:"note_id"`
	Key      string  `json:"key,omitempty"`
	Category string  `json:"category"`
	At       string  `json:"at" jsonschema:"when it was said or happened; if unknown, when the note was last written"`
	Cut      bool    `json:"cut,omitempty" jsonschema:"whether text is only a part of the note"`
}

// hits is the result of a search.
type hits struct {
	Results []hit  `json:"results" jsonschema:"the best match first"`
	Note    string `json:"note,omitempty" jsonschema:"what was not searched, or not as requested"`
}

// Text implements [sdk.Texter].
func (h hits) Text() string {
	var text strings.Builder
	if len(h.Results) == 0 {
		text.WriteString("No matching memories found")
	} else {
		fmt.Fprintf(&text, "Found %s:\n\n", display.Plural(len(h.Results), "memory"))
	}
	for _, one := range h.Results {
		fmt.Fprintf(&text, "- **%s**: %s\n", cmp.Or(one.Key, one.NoteID), indented(one.Text))
	}
	if h.Note != "" {
		text.WriteString("\n[" + h.Note + "]")
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// search is the tool memory_search.
func search(ctx context.Context, c *call, in searchArgs) (hits, error) {
	s := users.Search{
		Mode: users.Mode(in.Mode), Limit: in.TopK, Words: c.words, Near: c.near, Recent: in.Order == "recent", Now: c.now,
		Filter: rank.Filter{Conversation: in.Conversation, Tags: in.Tags},
	}
	if strings.TrimSpace(in.Query) == "" {
		return hits{}, tool.Errorf(tool.InvalidArgument, "query is empty").WithHint("give a question or words; memory_list lists notes without a query")
	}
	s.Text = in.Query[:min(len(in.Query), maxQuery)]
	var err error
	if in.Category != "" {
		if s.Filter.Only, err = categoryOf(in.Category); err != nil {
			return hits{}, err
		}
		s.Filter.OnlySet = true
		s.Filter.Conversation = s.Filter.Conversation || s.Filter.Only == rank.Conversation
	}
	if s.Filter.Since, err = point("since", in.Since, c.now, -1, false); err != nil {
		return hits{}, err
	}
	if s.Filter.Until, err = point("until", in.Until, c.now, -1, true); err != nil {
		return hits{}, err
	}
	found, note, err := c.user.Search(ctx, s)
	if err != nil {
		return hits{}, err
	}
	out := hits{Results: []hit{}, Note: note}
	for i := range found {
		h, err := showHit(&found[i], c.room()/len(found))
		if err != nil {
			return hits{}, err
		}
		out.Results = append(out.Results, h)
	}
	return out, nil
}

// showHit converts a found note for a result of at most room bytes of JSON. It
// shows the best matching part of a long note.
func showHit(f *users.Found, room int) (hit, error) {
	h := hit{
		Source: f.Source, Score: math.Round(f.Score*1e4) / 1e4, NoteID: f.NoteID, Key: f.Key,
		Category: categoryNames[f.Category], At: stamp(f.At()),
	}
	text, err := fitting(f.Content[f.Part.Start:f.Part.Stop], h, room)
	if err != nil {
		return h, err
	}
	h.Text, h.Cut = text, len(text) < len(f.Content)
	if f.Part.Start+len(text) < len(f.Content) {
		h.Text += " […]"
	}
	if f.Part.Start > 0 {
		h.Text = "[…] " + h.Text
	}
	return h, nil
}
