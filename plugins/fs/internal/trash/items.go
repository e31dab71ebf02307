package trash

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/roots"
	"github.com/toolhost/toolhost/sdk/tool"
)

// idTime is the layout of the time at the beginning of an id.
const idTime = "20060102-150405"

// maxInfo is the maximum size of an info.json.
const maxInfo = 64 << 10

// Bounds limit the trash of one user. The item that was deleted last always stays.
type Bounds struct {
	Age   time.Duration
	Bytes int64
	Items int
}

// Item is something in the trash.
type Item struct {
	Info
	ID string
	// Empty means that the item has not arrived, or was restored.
	Empty bool
}

// isEmpty reports whether a slot certainly has no content.
func isEmpty(trash *roots.Dir, id string) bool {
	place, err := trash.OpenDir(id)
	if err != nil {
		return false
	}
	defer func() { _ = place.Close() }() // nothing was written to it
	_, err = place.Info("content")
	told, ok := errors.AsType[*tool.Error](err)
	return ok && told.Code == tool.NotFound
}

// emptyAge is how long a slot can be empty during a deletion; a deletion takes less.
const emptyAge = time.Hour

// Items returns the items of the trash, the last deleted first.
func (t *Trash) Items(ctx context.Context) ([]Item, error) {
	dir, err := t.folder.OpenDir("trash", nil)
	if told, ok := errors.AsType[*tool.Error](err); ok && told.Code == tool.NotFound {
		return nil, nil // nothing was deleted yet
	}
	if err != nil {
		return nil, Hidden(err)
	}
	defer func() { _ = dir.Close() }() // nothing was written to it
	entries, err := dir.Read(nil)
	if err != nil {
		return nil, Hidden(err)
	}
	var all []Item
	for _, entry := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !entry.Type.IsDir() {
			continue
		}
		one := t.thing(entry.Name)
		one.Empty = isEmpty(dir, entry.Name)
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Item) int {
		return cmp.Or(b.Deleted.Compare(a.Deleted), strings.Compare(b.ID, a.ID))
	})
	return all, nil
}

// thing returns what is known about the item with an id: at least its age.
func (t *Trash) thing(id string) Item {
	one := Item{ID: id}
	f, err := t.folder.Open(path.Join("trash", id, "info.json"))
	if err == nil {
		defer f.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(f, maxInfo)); err == nil {
			err = json.Unmarshal(data, &one.Info)
		}
	}
	if err != nil {
		one.Info = Info{}
		one.Deleted, _ = time.Parse(idTime, id[:min(len(idTime), len(id))]) // an item without a time counts as old
	}
	return one
}

// Bound permanently removes the oldest items that exceed the bounds, except those in last. If an
// item cannot be removed, the next deletion tries again.
func (t *Trash) Bound(ctx context.Context, last ...string) {
	all, err := t.Items(ctx)
	if err != nil {
		return
	}
	var bytes int64
	for i, one := range all {
		bytes += one.Bytes
		if !slices.Contains(last, one.ID) && (i >= t.bounds.Items || bytes > t.bounds.Bytes || time.Since(one.Deleted) > t.bounds.Age || one.Empty && time.Since(one.Deleted) > emptyAge) {
			bytes -= one.Bytes
			_ = t.remove(ctx, one.ID) // see above
		}
	}
}

// remove permanently removes an item.
func (t *Trash) remove(ctx context.Context, id string) error {
	place, err := t.folder.Target(path.Join("trash", id), roots.TargetOptions{})
	if err != nil {
		return err
	}
	defer place.Close()
	unlock, err := t.folder.Lock(ctx, place)
	if err != nil {
		return err
	}
	defer unlock()
	return place.Remove()
}

// line returns the line of an item in a list.
func (t *Item) line() string {
	size := display.Plural(int(t.Bytes), "byte")
	if t.Kind == "directory" {
		size = display.Plural(t.Files, "file") + ", " + size
	}
	return fmt.Sprintf("%s  %s  (%s, %s, deleted %s)", t.ID, display.VisibleName(t.Shown), t.Kind, size, t.Deleted.Format(time.RFC3339))
}

// List lists as many items as fit the budget.
func List(all []Item, budget int) string {
	if len(all) == 0 {
		return "the trash is empty"
	}
	var b strings.Builder
	shown := 0
	for i := range all {
		line := all[i].line() + "\n"
		if b.Len()+len(line) > budget {
			break
		}
		b.WriteString(line)
		shown++
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if shown < len(all) {
		text += fmt.Sprintf("\n[%d of %d, the last first]", shown, len(all))
	}
	return text
}
