package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

// categoryNames are the categories as callers name them.
var categoryNames = [...]string{rank.Core: "core", rank.Daily: "daily", rank.Conversation: "conversation"}

// categoryOf returns the category with a name. The schema knows no other names.
func categoryOf(name string) (rank.Category, error) {
	for c, known := range categoryNames {
		if name == known {
			return rank.Category(c), nil
		}
	}
	return 0, tool.Errorf(tool.InvalidArgument, "there is no category %q", name).WithHint("it is core, daily or conversation")
}

// shown is a note as results have it.
type shown struct {
	NoteID   string   `json:"note_id"`
	Key      string   `json:"key,omitempty"`
	Category string   `json:"category"`
	Content  string   `json:"content" jsonschema:"what the note says, or a part of it"`
	Tags     []string `json:"tags,omitempty"`
	Pinned   bool     `json:"pinned,omitempty"`
	Source   string   `json:"source,omitempty" jsonschema:"who said it, or where it comes from"`
	Session  string   `json:"session,omitempty" jsonschema:"the conversation that it belongs to"`
	Seq      *int64   `json:"seq,omitempty" jsonschema:"its place in the conversation"`
	Occurred string   `json:"occurred_at,omitempty" jsonschema:"when it was said or happened"`
	Expires  string   `json:"expires,omitempty" jsonschema:"when it is forgotten"`
	Created  string   `json:"created" jsonschema:"when it was saved"`
	Updated  string   `json:"updated,omitempty" jsonschema:"when it was changed last"`

	Client       string `json:"saved_by_client,omitempty" jsonschema:"the program that has saved it"`
	SavedSession string `json:"saved_in_session,omitempty" jsonschema:"the session of that program"`
}

// show returns a note as results have it.
func show(n *store.Note) shown {
	s := shown{
		NoteID: n.NoteID, Key: n.Key, Category: categoryNames[n.Category], Content: n.Content, Tags: n.Tags, Pinned: n.Pinned,
		Source: n.Source, Session: n.Session, Occurred: stamp(n.Occurred), Expires: stamp(n.Expires), Created: stamp(n.Created),
		Client: n.Origin.Client, SavedSession: n.Origin.Session,
	}
	if n.Seq >= 0 {
		s.Seq = &n.Seq
	}
	if !n.Updated.Equal(n.Created) {
		s.Updated = stamp(n.Updated)
	}
	return s
}

// stamp writes a time; "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.999Z07:00")
}

// name is how a note is called in texts: by its key, or its number.
func name(n *store.Note) string { return cmp.Or(n.Key, n.NoteID) }

// resultRoom is left of the output for what stands beside the notes.
const resultRoom = 4 << 10

// room is how many bytes of JSON the notes of a result may take.
func (c *call) room() int { return max(int(c.MaxOutput())-resultRoom, resultRoom) }

// fitting returns the beginning of a text for which there is room as JSON, beside
// the value that it becomes a part of; at least a little of it.
func fitting(text string, beside any, room int) (string, error) {
	const least = 200
	data, err := json.Marshal(beside)
	if err != nil {
		return "", err
	}
	room = max(room-len(data), least)
	for at, r := range text {
		if room -= jsonSize(r); room < 0 {
			return text[:at], nil
		}
	}
	return text, nil
}

// jsonSize is how many bytes a character takes in JSON at most.
func jsonSize(r rune) int {
	switch {
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == utf8.RuneError:
		return len(`\u0000`)
	case r == '"', r == '\\':
		return 2
	}
	return utf8.RuneLen(r)
}

// indented is a text as an item of a list: its further lines do not look like other
// items.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// excerpt cuts a text to about n characters.
func excerpt(text string, n int) string {
	if len(text) <= n || utf8.RuneCountInString(text) <= n {
		return text
	}
	end := 0
	for range n {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return text[:end] + " […]"
}

// facts are what stands beside a note's text, for a model.
func facts(s *shown) string {
	var all []string
	add := func(label, value string) {
		if value != "" {
			all = append(all, label+value)
		}
	}
	add("", s.Category)
	add("key ", s.Key)
	add("tags ", strings.Join(s.Tags, ", "))
	if s.Pinned {
		all = append(all, "pinned")
	}
	add("source ", s.Source)
	add("session ", s.Session)
	if s.Seq != nil {
		all = append(all, fmt.Sprintf("seq %d", *s.Seq))
	}
	add("occurred ", s.Occurred)
	add("expires ", s.Expires)
	add("created ", s.Created)
	add("updated ", s.Updated)
	return strings.Join(all, "; ")
}
