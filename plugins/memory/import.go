package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxImport is how many notes one call imports from JSON Lines.
	maxImport = 50_000
	// maxMistakes is how many mistakes an error lists.
	maxMistakes = 5
)

type importArgs struct {
	Data       string `json:"data,omitempty" jsonschema:"JSON Lines"`
	Snapshot   string `json:"snapshot,omitempty" jsonschema:"or name of a snapshot"`
	OnConflict string `json:"on_conflict,omitempty" jsonschema:"for notes that exist" enum:"skip,replace,fail" default:"skip"`
}

// imported is the result of memory_import.
type imported struct {
	Added    int `json:"added" jsonschema:"how many notes were added"`
	Replaced int `json:"replaced" jsonschema:"how many existing notes were replaced"`
	Skipped  int `json:"skipped" jsonschema:"how many existing notes were kept"`
}

// Text implements [sdk.Texter].
func (i imported) Text() string {
	return fmt.Sprintf("Imported %d notes: %d added, %d replaced; %d skipped", i.Added+i.Replaced, i.Added, i.Replaced, i.Skipped)
}

// importNotes is the tool memory_import. It imports all notes or none.
func importNotes(ctx context.Context, c *call, in importArgs) (imported, error) {
	var feed func(take func([]incoming) error) error
	switch {
	case (in.Data == "") == (in.Snapshot == ""):
		return imported{}, tool.Errorf(tool.InvalidArgument, "expected either data or snapshot").WithHint("give notes as JSON Lines in data, or the name of a snapshot")
	case in.Data != "":
		notes, err := readLines(c, in.Data) // reports all mistakes before anything changes
		if err != nil {
			return imported{}, err
		}
		feed = func(take func([]incoming) error) error { return take(notes) }
	default:
		feed = func(take func([]incoming) error) error { return readSnapshot(ctx, c, in.Snapshot, take) }
	}
	var out imported
	err := c.user.Store().Write(ctx, func(tx *store.Tx) error {
		return feed(func(notes []incoming) error {
			if err := prepare(ctx, c, notes); err != nil {
				return err
			}
			for i := range notes {
				if err := importOne(tx, &notes[i], in.OnConflict, c.now, &out); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return imported{}, err
	}
	c.follow(ctx)
	return out, nil
}

// incoming is a note to import.
type incoming struct {
	store.Note
	// named reports whether the note came with a note_id, so that it may exist
	// already.
	named bool
}

// importOne saves one imported note.
func importOne(tx *store.Tx, n *incoming, onConflict string, now time.Time, out *imported) error {
	there, err := store.Note{}, store.ErrNotFound
	if n.named {
		there, err = tx.ByNoteID(n.NoteID)
	}
	if errors.Is(err, store.ErrNotFound) && n.Key != "" {
		there, err = tx.ByKey(n.Key)
	}
	if err == nil && there.Expired(now) { // a caller no longer sees it
		if err = tx.Delete(there.ID); err == nil {
			return importOne(tx, n, onConflict, now, out) // another note may have the key
		}
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		out.Added++
		return tx.Put(&n.Note)
	case err != nil:
		return err
	case onConflict == "fail":
		return tool.Errorf(tool.Conflict, "The note %s already exists: nothing was imported", name(&there)).WithHint("import with on_conflict skip or replace")
	case onConflict == "skip":
		out.Skipped++
		return nil
	}
	if n.Key != "" && there.Key != n.Key { // another note may have the key
		if other, err := tx.ByKey(n.Key); err == nil {
			if err := tx.Delete(other.ID); err != nil {
				return err
			}
		} else if !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	n.ID, n.NoteID = there.ID, there.NoteID
	out.Replaced++
	return tx.Put(&n.Note)
}

// prepare makes the passages of all notes, on all processors.
func prepare(ctx context.Context, c *call, notes []incoming) error {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() { // ends with its share of the notes
			for i := w; i < len(notes) && errs[w] == nil; i += workers {
				notes[i].Passages, errs[w] = c.user.PrepareLater(ctx, notes[i].Content)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// readLines parses notes as JSON Lines and reports up to maxMistakes mistakes at
// once.
func readLines(c *call, data string) ([]incoming, error) {
	var notes []incoming
	var mistakes []string
	line := 0
	for text := range strings.SplitSeq(data, "\n") {
		line++
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, moreNotice) || strings.HasPrefix(text, leftOutNotice) {
			continue
		}
		if len(notes) == maxImport {
			return nil, tool.Errorf(tool.InvalidArgument, "data has more than %d notes: nothing was imported", maxImport).WithHint("import them in several calls")
		}
		n, err := readLine(c, text)
		if err != nil {
			mistakes = append(mistakes, fmt.Sprintf("line %d: %s", line, tool.AsError(err).Message))
			if len(mistakes) == maxMistakes {
				break
			}
			continue
		}
		notes = append(notes, n)
	}
	if len(mistakes) > 0 {
		return nil, tool.Errorf(tool.InvalidArgument, "nothing was imported: %s", strings.Join(mistakes, "; ")).
			WithHint("each line is a JSON object in the format of memory_export, with at least content")
	}
	return notes, nil
}

// readLine parses one note.
func readLine(c *call, text string) (incoming, error) {
	var s shown
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return incoming{}, tool.Errorf(tool.InvalidArgument, "expected a JSON object that describes a note")
	}
	if s.Category == "" {
		s.Category = "core"
	}
	made, err := newNote(c, saveArgs{
		Content: s.Content, Key: s.Key, Category: s.Category, Tags: s.Tags, Pinned: s.Pinned, Source: s.Source,
		Session: s.Session, Seq: s.Seq, OccurredAt: s.Occurred,
	})
	n := incoming{Note: made, named: s.NoteID != ""}
	if err != nil {
		return n, err
	}
	if n.named {
		id, ok := strings.CutPrefix(s.NoteID, "note-")
		if _, err := uuid.Parse(id); !ok || err != nil {
			return n, tool.Errorf(tool.InvalidArgument, "note_id is %.60q, expected note- and a UUID", s.NoteID)
		}
		n.NoteID = s.NoteID
	}
	for _, t := range []struct {
		name, text string
		into       *time.Time
	}{{"created", s.Created, &n.Created}, {"expires", s.Expires, &n.Expires}} {
		at, err := point(t.name, t.text, c.now, 0, false)
		if err != nil {
			return n, err
		}
		if !at.IsZero() {
			*t.into = at
		}
	}
	n.Updated = n.Created
	if s.Updated != "" {
		if n.Updated, err = point("updated", s.Updated, c.now, 0, false); err != nil {
			return n, err
		}
	}
	if s.Client != "" || s.SavedSession != "" {
		n.Origin = store.Origin{Client: display.Cut(s.Client, maxName), Session: display.Cut(s.SavedSession, maxName)}
	}
	return n, nil
}
