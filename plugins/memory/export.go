package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type exportArgs struct {
	Format string `json:"format,omitempty" jsonschema:"snapshot writes a file" enum:"jsonl,snapshot" default:"jsonl"`
	Limit  int    `json:"limit,omitempty" jsonschema:"most notes" min:"1" max:"1000" default:"200"`
	sdk.Paged
}

// exported is the result of memory_export.
type exported struct {
	Data     string     `json:"data,omitempty" jsonschema:"the notes as JSON Lines"`
	Notes    int        `json:"notes" jsonschema:"how many notes data or the snapshot contains"`
	LeftOut  []string   `json:"left_out,omitempty" jsonschema:"the note_ids of notes that are too large for a page"`
	Next     sdk.Cursor `json:"next_cursor,omitempty"`
	Snapshot string     `json:"snapshot,omitempty" jsonschema:"the name of the snapshot"`
	Bytes    int64      `json:"bytes,omitempty" jsonschema:"the size of the snapshot"`
}

// Text implements [sdk.Texter].
func (e exported) Text() string {
	if e.Snapshot != "" {
		return fmt.Sprintf("Wrote %s: %d notes, %d bytes", e.Snapshot, e.Notes, e.Bytes)
	}
	var text strings.Builder
	text.WriteString(e.Data)
	for _, id := range e.LeftOut {
		text.WriteString(notice(id))
	}
	if e.Next != "" {
		text.WriteString(e.Next.Note("") + "\n")
	}
	return text.String()
}

// notice returns the line that replaces a note too large for the page.
func notice(id string) string {
	return fmt.Sprintf("%s: read %s with memory_get, or export a snapshot]\n", leftOutNotice, id)
}

// export is the tool memory_export.
func export(ctx context.Context, c *call, in exportArgs) (exported, error) {
	if in.Format == "snapshot" {
		return snapshot(ctx, c)
	}
	after, _ := in.Cursor.Position()
	var out exported
	var data strings.Builder
	size := 0 // of the text
	// Both the text and its copy in JSON count. A note that does not fit gets its own page, if
	// its JSON copy fits.
	room := c.room() / 3
	var failed error
	err := c.user.Store().All(ctx, after, c.now, func(n *store.Note) bool {
		line, err := json.Marshal(show(n))
		inJSON, again := json.Marshal(string(line))
		if failed = errors.Join(err, again); failed != nil {
			return false
		}
		line = append(line, '\n')
		tooLarge := len(inJSON) > c.room()
		if tooLarge {
			line = []byte(notice(n.NoteID))
		}
		told := out.Notes + len(out.LeftOut)
		if told == in.Limit || told > 0 && size+len(line) > room {
			out.Next = sdk.CursorAt(after, "")
			return false
		}
		after = n.ID
		size += len(line)
		if tooLarge {
			out.LeftOut = append(out.LeftOut, n.NoteID)
			return true
		}
		data.Write(line)
		out.Notes++
		return true
	})
	if err := errors.Join(err, failed); err != nil {
		return exported{}, err
	}
	out.Data = data.String()
	return out, nil
}

// The beginnings of lines in an export that are not notes. memory_import skips
// them.
const (
	leftOutNotice = "[left out, too large for a page"
	moreNotice    = "[more follows"
)

// snapshotName matches the names of snapshots. snapshotTime is the layout of such a
// name: names sort by time.
var snapshotName = regexp.MustCompile(`^snapshot-[0-9]{8}T[0-9]{6}\.[0-9]{3}Z$`)

const snapshotTime = "snapshot-20060102T150405.000Z"

// snapshotDir returns the directory of the user's snapshots, next to the user's file and named
// after it.
func (c *call) snapshotDir() string {
	return strings.TrimSuffix(c.user.Store().Path(), ".db") + "-snapshots"
}

// snapshot writes all notes to a file and removes the oldest snapshots.
func snapshot(ctx context.Context, c *call) (exported, error) {
	select {
	case c.snapshotting <- struct{}{}:
		defer func() { <-c.snapshotting }()
	case <-ctx.Done():
		return exported{}, context.Cause(ctx)
	}
	dir := c.snapshotDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return exported{}, notWritten(err)
	}
	sweep(c, dir)
	names, err := snapshots(dir)
	if err != nil {
		return exported{}, notWritten(err)
	}
	at := time.Now().UTC()
	if len(names) > 0 {
		if newest, err := time.Parse(snapshotTime, names[len(names)-1]); err == nil && !newest.Before(at) { // the clock was set back
			at = newest.Add(time.Millisecond)
		}
	}
	var out exported
	for err = os.ErrExist; errors.Is(err, os.ErrExist); at = at.Add(time.Millisecond) { // until the name is free
		out.Snapshot = at.Format(snapshotTime)
		out.Bytes, err = c.user.Store().Snapshot(ctx, filepath.Join(dir, out.Snapshot+".db"))
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return exported{}, notWritten(err)
	}
	if err != nil {
		return exported{}, err
	}
	if out.Notes, err = c.user.Store().Len(ctx); err != nil {
		return exported{}, err
	}
	if err := prune(c, dir, out.Snapshot); err != nil {
		return exported{}, tool.Errorf(tool.Failed, "The directory of snapshots cannot be read").WithCause(err)
	}
	return out, nil
}

func notWritten(err error) error {
	return tool.Errorf(tool.Failed, "The snapshot could not be written").WithCause(err)
}

// prune removes the oldest snapshots, so that with the one just made no more than
// the setting allows are kept. Snapshots that another process made later do not
// count.
func prune(c *call, dir, made string) error {
	names, err := snapshots(dir)
	if err != nil {
		return err
	}
	tooMany := max(slices.Index(names, made)+1-c.Snapshots, 0)
	for _, old := range names[:tooMany] {
		if err := os.Remove(filepath.Join(dir, old+".db")); err != nil && !errors.Is(err, os.ErrNotExist) {
			c.Logger().Warn("an old snapshot could not be removed", "error", err)
		}
	}
	return nil
}

// leftOver is the age at which an unfinished snapshot counts as abandoned.
const leftOver = time.Hour

// sweep removes unfinished snapshots of processes that were killed.
func sweep(c *call, dir string) {
	left, err := filepath.Glob(filepath.Join(dir, "snapshot-*"+store.Part+"*"))
	for _, path := range left {
		info, failed := os.Stat(path)
		if failed == nil && c.now.Sub(info.ModTime()) > leftOver {
			failed = os.Remove(path)
		}
		if !errors.Is(failed, os.ErrNotExist) { // another process may have removed it first
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		c.Logger().Warn("an unfinished snapshot could not be removed", "error", err)
	}
}

// snapshots returns the names of all snapshots, the oldest first.
func snapshots(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".db"); ok && snapshotName.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// snapshotBatch is how many bytes of notes of a snapshot are in memory at a time.
const snapshotBatch = 4 << 20

// noteSize is the approximate size of a note without its content.
const noteSize = 1 << 10

// readSnapshot passes the notes of a snapshot to take, in batches.
func readSnapshot(ctx context.Context, c *call, name string, take func([]incoming) error) error {
	names, err := snapshots(c.snapshotDir())
	if err != nil {
		return tool.Errorf(tool.Failed, "The snapshots cannot be read").WithCause(err)
	}
	if !slices.Contains(names, name) {
		there := "there are no snapshots; memory_export makes one with format snapshot"
		if len(names) > 0 {
			there = "available snapshots: " + strings.Join(names, ", ")
		}
		return tool.Errorf(tool.NotFound, "The snapshot %.60q does not exist", name).WithHint("%s", there)
	}
	var notes []incoming
	size := 0 // of notes
	err = store.ReadSnapshot(ctx, filepath.Join(c.snapshotDir(), name+".db"), c.User(), func(n *store.Note) error {
		n.ID = 0
		notes = append(notes, incoming{Note: *n, named: true})
		if size += len(n.Content) + noteSize; size < snapshotBatch {
			return nil
		}
		defer func() { notes, size = nil, 0 }()
		return take(notes)
	})
	if errors.Is(err, store.ErrFile) {
		return tool.Errorf(tool.Failed, "The snapshot %s is damaged: nothing was imported", name).WithHint("import another one; available snapshots: %s", strings.Join(names, ", ")).WithCause(err)
	}
	if err != nil {
		return err
	}
	return take(notes)
}
