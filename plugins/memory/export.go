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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/plugins/memory/internal/store"
	"github.com/toolhost/toolhost/sdk/tool"
)

type exportArgs struct {
	Format string `json:"format,omitempty" jsonschema:"jsonl gives notes as JSON Lines, in pages; snapshot writes all of them to a file in the plugin's own directory, from which memory_import brings them back" enum:"jsonl,snapshot" default:"jsonl"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many notes a page has at most" min:"1" max:"1000" default:"200"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page to go on after"`
}

// exported is the result of memory_export.
type exported struct {
	Data     string   `json:"data,omitempty" jsonschema:"the notes as JSON Lines"`
	Notes    int      `json:"notes" jsonschema:"how many there are in data, or in the snapshot"`
	LeftOut  []string `json:"left_out,omitempty" jsonschema:"the note_id of notes that are too large for a page"`
	Next     string   `json:"next_cursor,omitempty" jsonschema:"the cursor to go on with; left out if there are no more"`
	Snapshot string   `json:"snapshot,omitempty" jsonschema:"the name of the snapshot"`
	Bytes    int64    `json:"bytes,omitempty" jsonschema:"the size of the snapshot"`
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
		fmt.Fprintf(&text, "%s: cursor=%s]\n", moreNotice, e.Next)
	}
	return text.String()
}

// notice is the line for a note that is left out.
func notice(id string) string {
	return fmt.Sprintf("%s: memory_get gives %s in parts, and a snapshot has it]\n", leftOutNotice, id)
}

// export is the tool memory_export.
func export(ctx context.Context, c *call, in exportArgs) (exported, error) {
	if in.Format == "snapshot" {
		return snapshot(ctx, c)
	}
	after, err := cursor(in.Cursor)
	if err != nil {
		return exported{}, err
	}
	var out exported
	var data strings.Builder
	size := 0 // of the text
	// The text and its copy in JSON both count. A note that does not fit so has a page
	// of its own, if its copy fits.
	room := c.room() / 3
	var failed error
	err = c.user.Store().All(ctx, after, c.now, func(n *store.Note) bool {
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
			out.Next = strconv.FormatInt(after, 10)
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

// How lines of an export begin that are no notes. memory_import passes over them.
const (
	leftOutNotice = "[left out, too large for a page"
	moreNotice    = "[there are more"
)

// snapshotName is what the files of snapshots are called, and snapshotTime how a name
// tells when one was made: in their order.
var snapshotName = regexp.MustCompile(`^snapshot-[0-9]{8}T[0-9]{6}\.[0-9]{3}Z$`)

const snapshotTime = "snapshot-20060102T150405.000Z"

// snapshotDir is where the snapshots of a call's user are: beside the file, by
// whose name they are kept apart from those of others.
func (c *call) snapshotDir() string {
	return strings.TrimSuffix(c.user.Store().Path(), ".db") + "-snapshots"
}

// snapshot writes all notes to a file, and removes the oldest snapshots.
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
		if newest, err := time.Parse(snapshotTime, names[len(names)-1]); err == nil && !newest.Before(at) { // the clock was put back
			at = newest.Add(time.Millisecond)
		}
	}
	var out exported
	for err = os.ErrExist; errors.Is(err, os.ErrExist); at = at.Add(time.Millisecond) { // that has no snapshot yet
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
		return exported{}, tool.Errorf(tool.Failed, "The earlier snapshots cannot be read").WithCause(err)
	}
	return out, nil
}

func notWritten(err error) error {
	return tool.Errorf(tool.Failed, "The snapshot could not be written").WithCause(err)
}

// prune removes the snapshots before one that are too many with it. Another process
// may do the same: the newest of all stays.
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

// leftOver is the age at which a snapshot that is not whole has no writer any
// more.
const leftOver = time.Hour

// sweep removes what is left of snapshots whose writer was killed.
func sweep(c *call, dir string) {
	left, err := filepath.Glob(filepath.Join(dir, "snapshot-*"+store.Part+"*"))
	for _, path := range left {
		info, failed := os.Stat(path)
		if failed == nil && c.now.Sub(info.ModTime()) > leftOver {
			failed = os.Remove(path)
		}
		if !errors.Is(failed, os.ErrNotExist) { // its writer may have come first
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		c.Logger().Warn("what is left of a snapshot could not be removed", "error", err)
	}
}

// snapshots lists the names of snapshots, the oldest first.
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

// noteSize is about what a note takes beside its content.
const noteSize = 1 << 10

// readSnapshot reads the notes of a snapshot.
func readSnapshot(ctx context.Context, c *call, name string, take func([]incoming) error) error {
	names, err := snapshots(c.snapshotDir())
	if err != nil {
		return tool.Errorf(tool.Failed, "The snapshots cannot be read").WithCause(err)
	}
	if !slices.Contains(names, name) {
		there := "there is none; memory_export makes one"
		if len(names) > 0 {
			there = "there are " + strings.Join(names, ", ")
		}
		return tool.Errorf(tool.NotFound, "There is no snapshot %.60q", name).WithHint("%s", there)
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
		return tool.Errorf(tool.Failed, "The snapshot %s is damaged: nothing was imported", name).WithHint("import another one: there are %s", strings.Join(names, ", ")).WithCause(err)
	}
	if err != nil {
		return err
	}
	return take(notes)
}
