package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
)

type getArgs struct {
	NoteID string     `json:"note_id,omitempty" jsonschema:"id of the note"`
	Key    string     `json:"key,omitempty" jsonschema:"its key"`
	Cursor sdk.Cursor `json:"cursor,omitempty" jsonschema:"the last next_cursor" alias:"offset"`
}

// got is the result of memory_get.
type got struct {
	shown
	Offset int        `json:"offset,omitempty" jsonschema:"the byte of the note at which content begins"`
	Next   sdk.Cursor `json:"next_cursor,omitempty"`

	size int // of the whole note
}

// Text implements [sdk.Texter].
func (g got) Text() string {
	text := g.Content
	if g.Next != "" {
		text += "\n" + g.Next.Note(fmt.Sprintf("bytes %d-%d of the note of %d bytes", g.Offset, g.Offset+len(g.Content), g.size))
	}
	return fmt.Sprintf("%s\n\n[%s; %s]", text, g.NoteID, facts(&g.shown))
}

// get is the tool memory_get.
func get(ctx context.Context, c *call, in getArgs) (got, error) {
	which := named{in.NoteID, in.Key}
	if err := which.check(); err != nil {
		return got{}, err
	}
	find, what := c.user.Store().ByNoteID, in.NoteID
	if in.Key != "" {
		find, what = c.user.Store().ByKey, in.Key
	}
	n, err := find(ctx, what, c.now)
	if err := which.there(&n, err, c.now); err != nil {
		return got{}, err
	}
	offset, _ := in.Cursor.Position()
	if offset > int64(len(n.Content)) || offset < int64(len(n.Content)) && !utf8.RuneStart(n.Content[offset]) {
		return got{}, in.Cursor.Refuse()
	}
	out := got{shown: show(&n), Offset: int(offset), size: len(n.Content)}
	rest := n.Content[offset:]
	out.Content = ""
	if out.Content, err = fitting(rest, out, c.room()); err != nil {
		return got{}, err
	}
	if len(out.Content) < len(rest) {
		out.Next = sdk.CursorAt(offset+int64(len(out.Content)), "")
	}
	return out, nil
}

// maxLine is how many characters of a note a list shows.
const maxLine = 200

type listArgs struct {
	Category string `json:"category,omitempty" jsonschema:"only these notes" enum:"core,daily,conversation"`
	Prefix   string `json:"key_prefix,omitempty" jsonschema:"beginning of keys"`
	Pinned   bool   `json:"pinned,omitempty" jsonschema:"only pinned notes" default:"false"`
	Limit    int    `json:"limit,omitempty" jsonschema:"most notes" min:"1" max:"100" default:"20"`
	sdk.Paged
}

// listed is the result of memory_list.
type listed struct {
	Notes []shown    `json:"notes" jsonschema:"the newest first, each with the beginning of its text"`
	Next  sdk.Cursor `json:"next_cursor,omitempty"`
}

// Text implements [sdk.Texter].
func (l listed) Text() string {
	var text strings.Builder
	for i := range l.Notes {
		fmt.Fprintf(&text, "- **%s**: %s [%s]\n", cmp.Or(l.Notes[i].Key, l.Notes[i].NoteID), indented(l.Notes[i].Content), facts(&l.Notes[i]))
	}
	if len(l.Notes) == 0 {
		text.WriteString("No memories")
	}
	text.WriteString(l.Next.Note(""))
	return strings.TrimSuffix(text.String(), "\n")
}

// list is the tool memory_list.
func list(ctx context.Context, c *call, in listArgs) (listed, error) {
	l := store.Listing{Prefix: in.Prefix, Pinned: in.Pinned, Limit: in.Limit + 1, Now: c.now}
	if in.Category != "" {
		category, err := categoryOf(in.Category)
		if err != nil {
			return listed{}, err
		}
		l.Category = &category
	}
	l.Before, _ = in.Cursor.Position()
	notes, err := c.user.Store().List(ctx, l)
	if err != nil {
		return listed{}, err
	}
	out := listed{Notes: []shown{}}
	if len(notes) > in.Limit {
		notes = notes[:in.Limit]
		out.Next = sdk.CursorAt(notes[in.Limit-1].ID, "")
	}
	room := c.room()
	for i := range notes {
		s := show(&notes[i])
		s.Content = display.Cut(strings.ToValidUTF8(s.Content, ""), maxLine)
		data, err := json.Marshal(s)
		if err != nil {
			return listed{}, err
		}
		if room -= len(data); room < 0 && i > 0 { // the rest is on the next page
			out.Next = sdk.CursorAt(notes[i-1].ID, "")
			break
		}
		out.Notes = append(out.Notes, s)
	}
	return out, nil
}

// figures is the result of memory_stats.
type figures struct {
	Notes        int    `json:"notes" jsonschema:"how many notes have not expired"`
	Core         int    `json:"core"`
	Daily        int    `json:"daily"`
	Conversation int    `json:"conversation"`
	Pinned       int    `json:"pinned"`
	WithKey      int    `json:"with_key"`
	Expired      int    `json:"expired" jsonschema:"how many notes have expired and are about to be removed"`
	Oldest       string `json:"oldest,omitempty" jsonschema:"when the oldest note was saved"`
	Newest       string `json:"newest,omitempty" jsonschema:"when the newest note was saved"`
	Bytes        int64  `json:"bytes" jsonschema:"disk space used"`
	Embedder     string `json:"embedder" jsonschema:"the embedder in use"`
	Passages     int    `json:"passages" jsonschema:"how many searchable parts the notes have"`
	Embedded     int    `json:"embedded" jsonschema:"how many of the passages have a vector"`
	Trouble      string `json:"trouble,omitempty" jsonschema:"why the embedder fails, or what is not searched"`
}

// Text implements [sdk.Texter].
func (f figures) Text() string {
	text := fmt.Sprintf("%d memories: %d core, %d daily, %d conversation; %d pinned, %d with a key, %d expired\n%d bytes on disk\nembedder %s: %d of %d passages have a vector",
		f.Notes, f.Core, f.Daily, f.Conversation, f.Pinned, f.WithKey, f.Expired, f.Bytes, f.Embedder, f.Embedded, f.Passages)
	if f.Oldest != "" {
		text += "\nsaved from " + f.Oldest + " to " + f.Newest
	}
	if f.Trouble != "" {
		text += "\n" + f.Trouble
	}
	return text
}

type statsArgs struct{}

// stats is the tool memory_stats.
func stats(ctx context.Context, c *call, _ statsArgs) (figures, error) {
	s, err := c.user.Store().Stats(ctx, c.now)
	if err != nil {
		return figures{}, err
	}
	refused := 0
	if c.Embedder != "local" { // the local embedder refuses nothing
		if refused, err = c.user.Store().Refused(ctx); err != nil {
			return figures{}, err
		}
	}
	out := figures{
		Notes: s.Notes, Core: s.Core, Daily: s.Daily, Conversation: s.Said, Pinned: s.Pinned, WithKey: s.Keys, Expired: s.Expired,
		Oldest: stamp(s.Oldest), Newest: stamp(s.Newest), Bytes: c.user.Store().Size(),
		Embedder: c.users.Embedder(), Passages: s.Passages, Embedded: s.Passages - s.Pending - refused, Trouble: c.user.Trouble(),
	}
	if refused > 0 && out.Trouble == "" {
		out.Trouble = fmt.Sprintf("the embedder refused %d passages: they are found by their words only", refused)
	}
	return out, nil
}
