package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/toolhost/toolhost/plugins/memory/internal/rank"
	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// Limits of a note's metadata.
const (
	maxName = 512 // bytes of a key, a source, a session, a tag
	maxTags = 32
)

type saveArgs struct {
	Content     string   `json:"content" jsonschema:"what to remember, clear without context"`
	Key         string   `json:"key,omitempty" jsonschema:"name such as user/editor; saving it again replaces it"`
	Category    string   `json:"category,omitempty" jsonschema:"core: lasting; daily: for days; conversation: what was said" enum:"core,daily,conversation" default:"core"`
	Tags        []string `json:"tags,omitempty" jsonschema:"labels"`
	Pinned      bool     `json:"pinned,omitempty" jsonschema:"never ages" default:"false"`
	Expires     string   `json:"expires,omitempty" jsonschema:"duration (30d), date or time"`
	Source      string   `json:"source,omitempty" jsonschema:"who said it, or where"`
	Session     string   `json:"session,omitempty" jsonschema:"the conversation"`
	Seq         *int64   `json:"seq,omitempty" jsonschema:"position in it"`
	OccurredAt  string   `json:"occurred_at,omitempty" jsonschema:"when, if not now"`
	OnDuplicate string   `json:"on_duplicate,omitempty" jsonschema:"merge replaces a similar note, force saves twice" enum:"exact,merge,reject,force" default:"exact"`
}

// saved is the result of a tool that changes one note.
type saved struct {
	NoteID  string `json:"note_id,omitempty" jsonschema:"the note; omitted if it was deleted"`
	Message string `json:"message" jsonschema:"what was done"`
}

// Text implements [sdk.Texter].
func (s saved) Text() string { return s.Message }

// save is the tool memory_save.
func save(ctx context.Context, c *call, in saveArgs) (saved, error) {
	n, err := newNote(c, in)
	if err != nil {
		return saved{}, err
	}
	if n.Passages, err = c.user.Prepare(ctx, n.Content); err != nil {
		return saved{}, err
	}
	var alike *store.Note
	looksForAlike := in.OnDuplicate != "force" && n.Key == "" && (n.Category != rank.Conversation || in.OnDuplicate != "exact")
	if looksForAlike {
		if alike, err = c.user.Alike(ctx, &n, c.now); err != nil {
			return saved{}, err
		}
	}
	var out saved
	err = c.user.Store().Write(ctx, func(tx *store.Tx) error {
		out, err = put(tx, &n, in.OnDuplicate, alike, looksForAlike, c.now)
		return err
	})
	if err != nil {
		return saved{}, err
	}
	c.follow(ctx)
	return out, nil
}

// put saves a note according to on_duplicate. alike is a nearly identical note, or
// nil; unique reports whether duplicates matter.
func put(tx *store.Tx, n *store.Note, onDuplicate string, alike *store.Note, unique bool, now time.Time) (saved, error) {
	if n.Key != "" {
		return putKey(tx, n, now)
	}
	if unique {
		same, err := tx.Same(n, now)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return saved{}, err
		}
		if err == nil {
			alike = &same
		}
		switch {
		case alike != nil && onDuplicate == "reject":
			return saved{}, tool.Errorf(tool.Conflict, "The note %s is identical or nearly identical", alike.NoteID).
				WithHint("change that note with memory_update, or save with on_duplicate force")
		case err == nil, alike != nil && onDuplicate == "merge":
			return merge(tx, alike, n, err == nil)
		}
	}
	if err := tx.Put(n); err != nil {
		return saved{}, err
	}
	out := saved{NoteID: n.NoteID, Message: "Stored memory: " + n.NoteID}
	if alike != nil {
		out.Message += fmt.Sprintf("\nThe note %s is nearly identical: %q. If it is outdated, delete it with memory_delete", alike.NoteID, display.Cut(alike.Content, 200))
	}
	return out, nil
}

// putKey saves a note with a key. It replaces the note that has the key, if there
// is one.
func putKey(tx *store.Tx, n *store.Note, now time.Time) (saved, error) {
	before, err := tx.ByKey(n.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return saved{}, err
	case before.Expired(now): // a caller no longer sees it
		if err := tx.Delete(before.ID); err != nil {
			return saved{}, err
		}
	default:
		n.ID, n.NoteID, n.Created = before.ID, before.NoteID, before.Created
	}
	if err := tx.Put(n); err != nil {
		return saved{}, err
	}
	return saved{NoteID: n.NoteID, Message: "Stored memory: " + n.Key}, nil
}

// merge merges a note into one with the same or nearly the same content: it adds
// the tags, keeps the later expiry, and takes the new content. same reports that
// the contents are identical except for case and whitespace.
func merge(tx *store.Tx, into, n *store.Note, same bool) (saved, error) {
	merged, err := tx.ByID(into.ID) // its current state
	if errors.Is(err, store.ErrNotFound) {
		merged = *n
	} else if err != nil {
		return saved{}, err
	}
	if merged.ID != 0 {
		for _, tag := range n.Tags {
			if !slices.Contains(merged.Tags, tag) && len(merged.Tags) < maxTags {
				merged.Tags = append(merged.Tags, tag)
			}
		}
		merged.Pinned = merged.Pinned || n.Pinned
		if n.Expires.IsZero() || merged.Expires.Before(n.Expires) && !merged.Expires.IsZero() {
			merged.Expires = n.Expires
		}
		merged.Content, merged.Passages, merged.Updated = n.Content, n.Passages, n.Updated
	}
	if err := tx.Put(&merged); err != nil {
		return saved{}, err
	}
	if same && into.Content == n.Content {
		return saved{NoteID: merged.NoteID, Message: "Stored memory: " + merged.NoteID + ", which has the same content"}, nil
	}
	return saved{NoteID: merged.NoteID, Message: fmt.Sprintf("Stored memory: %s, replacing %q", merged.NoteID, display.Cut(into.Content, 200))}, nil
}

// newNote checks the arguments of a save and makes a note of them.
func newNote(c *call, in saveArgs) (store.Note, error) {
	n := store.Note{
		NoteID: "note-" + uuid.NewString(), Key: in.Key, Content: in.Content, Tags: in.Tags, Pinned: in.Pinned,
		Source: in.Source, Session: in.Session, Seq: -1, Created: c.now.UTC().Truncate(time.Millisecond),
		Origin: store.Origin{Client: display.Cut(c.Client(), maxName), Session: c.Session()},
	}
	n.Updated = n.Created
	if err := checkContent(c, in.Content); err != nil {
		return n, err
	}
	for _, name := range []struct{ what, text string }{{"key", in.Key}, {"source", in.Source}, {"session", in.Session}} {
		if err := checkName(name.what, name.text); err != nil {
			return n, err
		}
	}
	if err := checkTags(in.Tags); err != nil {
		return n, err
	}
	if in.Seq != nil {
		if n.Seq = *in.Seq; n.Seq < 0 {
			return n, tool.Errorf(tool.InvalidArgument, "seq is %d, expected 0 or more", n.Seq)
		}
	}
	var err error
	if n.Category, err = categoryOf(in.Category); err != nil {
		return n, err
	}
	if n.Occurred, err = point("occurred_at", in.OccurredAt, c.now, 0, false); err != nil {
		return n, err
	}
	if n.Expires, err = point("expires", in.Expires, c.now, 1, true); err != nil {
		return n, err
	}
	if !n.Expires.IsZero() && !n.Expires.After(c.now) {
		return n, tool.Errorf(tool.InvalidArgument, "expires is in the past").WithHint("omit expires, or give a later time")
	}
	return n, nil
}

func checkContent(c *call, content string) error {
	switch {
	case strings.TrimSpace(content) == "":
		return tool.Errorf(tool.InvalidArgument, "content is empty").WithHint("give the text to remember")
	case len(content) > int(c.MaxNote):
		return tool.Errorf(tool.InvalidArgument, "content has %d bytes, expected at most %d", len(content), int(c.MaxNote)).
			WithHint("save a summary, or several notes")
	}
	return nil
}

// checkName makes sure that a name fits on one line of a list.
func checkName(what, text string) error {
	if len(text) > maxName {
		return tool.Errorf(tool.InvalidArgument, "the %s has %d bytes, expected at most %d", what, len(text), maxName)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) {
		return tool.Errorf(tool.InvalidArgument, "the %s contains a line break or another control character: %.60q", what, text).WithHint("write it on one line; only content may have several lines")
	}
	return nil
}

func checkTags(tags []string) error {
	if len(tags) > maxTags {
		return tool.Errorf(tool.InvalidArgument, "there are %d tags, expected at most %d", len(tags), maxTags)
	}
	for _, tag := range tags {
		if tag == "" {
			return tool.Errorf(tool.InvalidArgument, "a tag is empty").WithHint("omit it")
		}
		if err := checkName("tag", tag); err != nil {
			return err
		}
	}
	return nil
}
