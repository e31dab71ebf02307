package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// text returns the text of the file before and after. It reports false if one of them is
// not text. A moved file is compared with its old place.
func (f *patchedFile) text() (before *snapshot.Snapshot, old, after string, ok bool) {
	before = &f.before
	if f.from != nil {
		before = &f.from.before
	}
	now := snapshot.Snapshot{Exists: f.exists, Kept: true, Size: int64(len(f.data)), Data: f.data, Head: f.data[:min(len(f.data), textfile.HeadSize)]}
	old, _, ok = before.Text()
	after, _, same := now.Text()
	return before, old, after, ok && same
}

// title says in one line what happens to the file.
func (f *patchedFile) title() string {
	path := display.VisibleName(f.target.String())
	switch operation := f.operation(); {
	case operation == deleted:
		return "deletes " + path + ", to the trash"
	case f.from != nil:
		return "moves " + display.VisibleName(f.from.target.String()) + " to " + path + f.modeTitle()
	case operation == created:
		return "creates " + path + f.modeTitle()
	default:
		return "updates " + path + f.modeTitle()
	}
}

func (f *patchedFile) modeTitle() string {
	switch {
	case f.mode == 0:
		return ""
	case f.mode&0o111 != 0:
		return ", executable"
	default:
		return ", not executable"
	}
}

// shown returns the files that change, without those that are moved away: the new place
// shows them.
func (c *patching) shown() []*patchedFile {
	var files []*patchedFile
	for _, f := range c.files {
		if operation := f.operation(); operation != "" && operation != movedTo {
			files = append(files, f)
		}
	}
	return files
}

func (c *patching) Show(context.Context) (string, []tool.Content, error) {
	files := c.shown()
	if len(files) == 1 {
		_, content := files[0].show()
		return strings.TrimSuffix(c.words.plan, " to") + ": " + files[0].title(), content, nil
	}
	var titles, diffs strings.Builder
	left := 0
	for _, f := range files {
		titles.WriteString(f.title() + "\n")
		size, content := f.show()
		if left > 0 || diffs.Len()+size > snapshot.MaxPreview {
			left++
			continue
		}
		diffs.WriteString(tool.Result{Content: content}.Text())
		if text := diffs.String(); text != "" && !strings.HasSuffix(text, "\n") {
			diffs.WriteByte('\n')
		}
	}
	var content []tool.Content
	if left > 0 {
		content = append(content, tool.Text(fmt.Sprintf("NOT ALL IS SHOWN: what changes in the last %d of %d files is left out.", left, len(files))))
	}
	content = append(content, snapshot.Bounded("list", titles.String())...)
	if diffs.Len() > 0 {
		content = append(content, tool.Text(diffs.String()))
	}
	return fmt.Sprintf("%s %d files", c.words.plan, len(files)), content, nil
}

// show shows the change of the content, and returns its size.
func (f *patchedFile) show() (size int, content []tool.Content) {
	before, old, after, text := f.text()
	if !f.exists {
		content = []tool.Content{tool.Text(fmt.Sprintf("Deletes: %s, %s\n", display.VisibleName(f.target.String()), f.before.Describe()))}
	} else {
		content = snapshot.ShowDiff(f.target.String(), before, old, after, text)
	}
	for _, part := range content {
		size += len(part.Data)
	}
	return size, content
}

// report describes the result, or for a dry run, the expected result.
func (c *patching) report() tool.Result {
	var text, diffs strings.Builder
	var facts []map[string]any
	compared := true
	files := c.shown()
	for _, f := range files {
		path := f.target.String()
		before, old, after, _ := f.text()
		fact := map[string]any{"path": path, "operation": f.operation()}
		line := f.title()
		if f.exists {
			fact["bytes"], fact["hash"] = len(f.data), fmt.Sprintf("sha256:%x", sha256.Sum256(f.data))
			added, removed := snapshot.CountLineChanges(old, after)
			fact["added"], fact["removed"] = added, removed
			line += fmt.Sprintf(" (+%d -%d)", added, removed)
		} else {
			fact["trash_id"] = f.trashID
		}
		if f.from != nil {
			fact["from"] = f.from.target.String()
		}
		if len(f.notes) > 0 {
			fact["notes"] = f.notes
			line += ": " + strings.Join(f.notes, "; ")
		}
		text.WriteString(line + "\n")
		facts = append(facts, fact)
		if c.dryRun {
			from := "/dev/null"
			if before.Exists {
				from = display.VisibleName("a/" + path)
			}
			d, ok := snapshot.Compare(from, display.VisibleName("b/"+path), old, after)
			compared = compared && ok
			diffs.WriteString(d.Text)
		}
	}
	head := fmt.Sprintf("%s %s:\n", c.words.done, display.Plural(len(files), "file"))
	if c.dryRun {
		head = fmt.Sprintf("[nothing was changed; %s %s:]\n", c.words.dry, display.Plural(len(files), "file"))
	}
	result := tool.TextResult(head + strings.TrimSuffix(text.String(), "\n"))
	if c.dryRun {
		result.Content = append(result.Content, fitDiff(snapshot.Difference{Text: diffs.String()}, compared, max(c.budget-text.Len(), page.NoteRoom))...)
	}
	result.Metadata = map[string]any{"files": facts}
	return result
}
