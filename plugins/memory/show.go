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
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// categoryNames are the names of the categories in arguments and results.
var categoryNames = [...]string{rank.Core: "core", rank.Daily: "daily", rank.Conversation: "conversation"}

// categoryOf returns the category with a name. The schema allows no other names.
func categoryOf(name string) (rank.Category, error) {
	for c, known := range categoryNames {
		if name == known {
			return rank.Category(c), nil
		}
	}
	return 0, tool.Errorf(tool.InvalidArgument, "unknown category %q", name).WithHint("expected core, daily or conversation")
}

// shown is a note in a result.
type shown struct {
	NoteID   string   `json:"note_id"`
	Key      string   `json:"key,omitempty"`
	Category string   `json:"category"`
	Content  string   `json:"content" jsonschema:"the text of the note, or a part of it"`
	Tags     []string `json:"tags,omitempty"`
	Pinned   bool     `json:"pinned,omitempty"`
	Source   string   `json:"source,omitempty" jsonschema:"who said it, or where the information comes from"`
	Session  string   `json:"session,omitempty" jsonschema:"the conversation it belongs to"`
	Seq      *int64   `json:"seq,omitempty" jsonschema:"its position in the conversation"`
	Occurred string   `json:"occurred_at,omitempty" jsonschema:"when it was said or happened"`
	Expires  string   `json:"expires,omitempty" jsonschema:"when the note expires"`
	Created  string   `json:"created" jsonschema:"when it was saved"`
	Updated  string   `json:"updated,omitempty" jsonschema:"when it was last changed"`

	Client       string `json:"saved_by_client,omitempty" jsonschema:"the client program that saved it"`
	SavedSession string `json:"saved_in_session,omitempty" jsonschema:"the session of that client"`
}

// show converts a note for a result.
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

// stamp formats a time. The zero time is "".
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.999Z07:00")
}

// name returns the name of a note for messages: its key, or its note_id if it has
// none.
func name(n *store.Note) string { return cmp.Or(n.Key, n.NoteID) }

// resultRoom is the part of the output limit reserved for everything except notes.
const resultRoom = 4 << 10

// room returns how many bytes of JSON the notes of a result may take.
func (c *call) room() int { return max(int(c.MaxOutput())-resultRoom, resultRoom) }

// fitting returns the beginning of text that fits as JSON into room bytes, together with the
// other value in the result. It returns at least about 200 bytes.
func fitting(text string, beside any, room int) (string, error) {
	const least = 200
	data, err := json.Marshal(beside)
	if err != nil {
		return "", err
	}
	room = max(room-len(data), least)
	for at, r := range text {
		size := display.JSONSize(string(r)) - len(`""`)
		if r == utf8.RuneError { // it may be a byte that is not UTF-8
			size = len(`\ufffd`)
		}
		if room -= size; room < 0 {
			return text[:at], nil
		}
	}
	return text, nil
}

// indented indents all lines of text but the first, so that they do not look like
// further list items.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// facts returns a note's metadata as text for a model.
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
