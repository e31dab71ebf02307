package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/users"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxQuery bounds what is read of a query, in bytes.
const maxQuery = 16 << 10

type searchArgs struct {
	Query        string   `json:"query" jsonschema:"what to look for: a question or words. A phrase in quotation marks must stand in the note as it is; word* is any word that begins so"`
	TopK         int      `json:"top_k,omitempty" jsonschema:"how many notes to return at most" min:"1" max:"20" default:"5" alias:"limit"`
	Conversation bool     `json:"include_conversation,omitempty" jsonschema:"also search what was said in conversations" default:"false"`
	Category     string   `json:"category,omitempty" jsonschema:"only notes of this category; conversation includes what was said in conversations" enum:"core,daily,conversation"`
	Tags         []string `json:"tags,omitempty" jsonschema:"only notes that have all of these tags"`
	Since        string   `json:"since,omitempty" jsonschema:"only notes from then on: a date, a time with its zone, or how long ago (7d)"`
	Until        string   `json:"until,omitempty" jsonschema:"only notes up to then, in the same form; a date is included"`
	Mode         string   `json:"mode,omitempty" jsonschema:"hybrid goes by words, also misspelled ones, and by likeness; vector by likeness only; keyword by the words as they are written, apart from endings" enum:"hybrid,vector,keyword" default:"hybrid"`
	Order        string   `json:"order,omitempty" jsonschema:"relevance, or recent: the newest first of what fits about as well as the best" enum:"relevance,recent" default:"relevance"`
}

// hit is a note that was found.
type hit struct {
	Text     string  `json:"text" jsonschema:"what the note says; of a long one the part that fits"`
	Source   string  `json:"source" jsonschema:"who said it, or where it comes from; empty if that is not known"`
	Score    float64 `json:"score" jsonschema:"how well it fits, beside the others"`
	NoteID   string  `json:"note_id"`
	Key      string  `json:"key,omitempty"`
	Category string  `json:"category"`
	At       string  `json:"at" jsonschema:"when it was said, or else written the last time"`
	Cut      bool    `json:"cut,omitempty" jsonschema:"text is a part of the note"`
}

// hits is the result of a search.
type hits struct {
	Results []hit  `json:"results" jsonschema:"the best first"`
	Note    string `json:"note,omitempty" jsonschema:"what was not searched, or not as was asked for"`
}

// Text implements [sdk.Texter].
func (h hits) Text() string {
	var text strings.Builder
	if len(h.Results) == 0 {
		text.WriteString("No matching memories found")
	} else {
		fmt.Fprintf(&text, "Found %d memories:\n\n", len(h.Results))
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
		return hits{}, tool.Errorf(tool.InvalidArgument, "the query is empty").WithHint("say what to look for; memory_list lists notes")
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

// showHit returns a note as a search shows it, in so many bytes of JSON: of a long
// one the part that was found.
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
