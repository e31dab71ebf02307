package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

type getArgs struct {
	NoteID string `json:"note_id,omitempty" jsonschema:"the note to read, as memory_save and memory_search name it"`
	Key    string `json:"key,omitempty" jsonschema:"or its key"`
	Offset int    `json:"offset,omitempty" jsonschema:"where to go on in a long note: next_offset of the result before" default:"0"`
}

// got is the result of memory_get.
type got struct {
	shown
	// Offset is where Content begins in the note, in bytes, and Next where the next
	// part does, if there is one.
	Offset int `json:"offset,omitempty"`
	Next   int `json:"next_offset,omitempty"`
}

// get is the tool memory_get.
func get(ctx context.Context, c *call, in getArgs) (tool.Result, error) {
	which := named{in.NoteID, in.Key}
	if err := which.check(); err != nil {
		return tool.Result{}, err
	}
	find, what := c.user.Store().ByNoteID, in.NoteID
	if in.Key != "" {
		find, what = c.user.Store().ByKey, in.Key
	}
	n, err := find(ctx, what, c.now)
	if err := which.there(&n, err, c.now); err != nil {
		return tool.Result{}, err
	}
	if in.Offset < 0 || in.Offset > len(n.Content) || in.Offset < len(n.Content) && !utf8.RuneStart(n.Content[in.Offset]) {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "there is no such offset in the note: %d", in.Offset).WithHint("take next_offset of an earlier result, or leave offset out")
	}
	out := got{shown: show(&n), Offset: in.Offset}
	rest := n.Content[in.Offset:]
	out.Content = ""
	if out.Content, err = fitting(rest, out, c.room()); err != nil {
		return tool.Result{}, err
	}
	text := out.Content
	if len(text) < len(rest) {
		out.Next = in.Offset + len(text)
		text += fmt.Sprintf("\n[the note goes on: offset=%d of %d bytes]", out.Next, len(n.Content))
	}
	return answer(fmt.Sprintf("%s\n\n[%s; %s]", text, n.NoteID, facts(&out.shown)), out)
}

// How many notes a list has.
const (
	defaultList = 20
	maxList     = 100
	// maxLine is how much of a note a list shows, in characters.
	maxLine = 200
)

type listArgs struct {
	Category string `json:"category,omitempty" jsonschema:"only notes of this category" enum:"core,daily,conversation"`
	Prefix   string `json:"key_prefix,omitempty" jsonschema:"only notes whose key begins so"`
	Pinned   bool   `json:"pinned,omitempty" jsonschema:"only pinned notes" default:"false"`
	Limit    int    `json:"limit,omitempty" jsonschema:"how many notes to list, 1 to 100" default:"20"`
	Cursor   string `json:"cursor,omitempty" jsonschema:"next_cursor of the list to go on with"`
}

// listed is the result of memory_list.
type listed struct {
	Notes []shown `json:"notes"`
	Next  string  `json:"next_cursor,omitempty"`
}

// list is the tool memory_list.
func list(ctx context.Context, c *call, in listArgs) (tool.Result, error) {
	if in.Limit < 1 || in.Limit > maxList {
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "limit is %d, expected 1 to %d", in.Limit, maxList)
	}
	l := store.Listing{Prefix: in.Prefix, Pinned: in.Pinned, Limit: in.Limit + 1, Now: c.now}
	if in.Category != "" {
		category, err := categoryOf(in.Category)
		if err != nil {
			return tool.Result{}, err
		}
		l.Category = &category
	}
	var err error
	if l.Before, err = cursor(in.Cursor); err != nil {
		return tool.Result{}, err
	}
	notes, err := c.user.Store().List(ctx, l)
	if err != nil {
		return tool.Result{}, err
	}
	out := listed{Notes: []shown{}}
	if len(notes) > in.Limit {
		notes = notes[:in.Limit]
		out.Next = strconv.FormatInt(notes[in.Limit-1].ID, 10)
	}
	var text strings.Builder
	room := c.room()
	for i := range notes {
		s := show(&notes[i])
		s.Content = excerpt(strings.ToValidUTF8(s.Content, ""), maxLine)
		data, err := json.Marshal(s)
		if err != nil {
			return tool.Result{}, err
		}
		if room -= len(data); room < 0 && i > 0 { // the rest comes with the next page
			out.Next = strconv.FormatInt(notes[i-1].ID, 10)
			break
		}
		out.Notes = append(out.Notes, s)
		fmt.Fprintf(&text, "- **%s**: %s [%s]\n", name(&notes[i]), indented(s.Content), facts(&s))
	}
	if len(notes) == 0 {
		text.WriteString("No memories")
	}
	if out.Next != "" {
		fmt.Fprintf(&text, "[there are more: cursor=%s]", out.Next)
	}
	return answer(strings.TrimSuffix(text.String(), "\n"), out)
}

// cursor reads a cursor; "" begins.
func cursor(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, tool.Errorf(tool.InvalidArgument, "there is no such cursor: %.40q", text).WithHint("take next_cursor of an earlier result, or leave cursor out")
	}
	return n, nil
}

// figures is the result of memory_stats.
type figures struct {
	Notes        int    `json:"notes"`
	Core         int    `json:"core"`
	Daily        int    `json:"daily"`
	Conversation int    `json:"conversation"`
	Pinned       int    `json:"pinned"`
	WithKey      int    `json:"with_key"`
	Expired      int    `json:"expired"`
	Oldest       string `json:"oldest,omitempty"`
	Newest       string `json:"newest,omitempty"`
	Bytes        int64  `json:"bytes"`
	Embedder     string `json:"embedder"`
	Passages     int    `json:"passages"`
	Embedded     int    `json:"embedded"`
	// Trouble says why the embedder does not work, or what is not searched.
	Trouble string `json:"trouble,omitempty"`
}

type statsArgs struct{}

// stats is the tool memory_stats.
func stats(ctx context.Context, c *call, _ statsArgs) (tool.Result, error) {
	s, err := c.user.Store().Stats(ctx, c.now)
	if err != nil {
		return tool.Result{}, err
	}
	refused := 0
	if c.Embedder != "local" { // which embeds everything
		if refused, err = c.user.Store().Refused(ctx); err != nil {
			return tool.Result{}, err
		}
	}
	out := figures{
		Notes: s.Notes, Core: s.Core, Daily: s.Daily, Conversation: s.Said, Pinned: s.Pinned, WithKey: s.Keys, Expired: s.Expired,
		Oldest: stamp(s.Oldest), Newest: stamp(s.Newest), Bytes: c.user.Store().Size(),
		Embedder: c.users.Embedder(), Passages: s.Passages, Embedded: s.Passages - s.Pending - refused, Trouble: c.user.Trouble(),
	}
	if refused > 0 && out.Trouble == "" {
		out.Trouble = fmt.Sprintf("the embedder refuses %d passages: they are found by their words only", refused)
	}
	text := fmt.Sprintf("%d memories: %d core, %d daily, %d conversation; %d pinned, %d with a key, %d expired\n%d bytes on disk\nembedder %s: %d of %d passages have a vector",
		out.Notes, out.Core, out.Daily, out.Conversation, out.Pinned, out.WithKey, out.Expired, out.Bytes, out.Embedder, out.Embedded, out.Passages)
	if out.Oldest != "" {
		text += "\nsaved from " + out.Oldest + " to " + out.Newest
	}
	if out.Trouble != "" {
		text += "\n" + out.Trouble
	}
	return answer(text, out)
}
