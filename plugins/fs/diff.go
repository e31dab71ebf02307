package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/plugins/fs/internal/snapshot"
	"github.com/toolhost/toolhost/plugins/fs/internal/textfile"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type diffFilesArgs struct {
	Path    string `json:"path" jsonschema:"old file" role:"path" alias:"old_path"`
	Other   string `json:"other" jsonschema:"new file" role:"path" alias:"new_path"`
	Context int    `json:"context,omitempty" jsonschema:"lines around a change" min:"1" max:"1000" default:"3"`
}

// diffFiles is the tool diff_files.
func diffFiles(ctx context.Context, w *workspace, in diffFilesArgs) (tool.Result, error) {
	if err := w.makeRoom(ctx, 2*snapshot.MaxDiff); err != nil {
		return tool.Result{}, err
	}
	before, err := w.wholeText(ctx, in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	after, err := w.wholeText(ctx, in.Other)
	if err != nil {
		return tool.Result{}, err
	}
	if before == after {
		return tool.TextResult("[the files have the same text]"), nil
	}
	if ends := strings.Count(before, "\n") + strings.Count(after, "\n"); ends > snapshot.MaxDiffLines {
		return tool.Result{}, tool.Errorf(tool.ResourceExhausted, "The files have %d lines together, at most %d can be compared", ends, snapshot.MaxDiffLines)
	}
	unified, err := udiff.ToUnifiedDiff(display.VisibleName("a/"+in.Path), display.VisibleName("b/"+in.Other), before, udiff.Lines(before, after), in.Context)
	if err != nil {
		return tool.Result{}, tool.Errorf(tool.Failed, "The files cannot be compared").WithCause(err)
	}
	diff := unified.String()
	added, removed := snapshot.CountChanges(unified)
	result := tool.TextResult(diff)
	result.Metadata = map[string]any{"added": added, "removed": removed}
	if len(diff) > w.budget {
		whole := strings.LastIndexByte(diff[:max(w.budget-page.NoteRoom, 0)], '\n') + 1
		result.Content = []tool.Content{tool.Text(diff[:whole]), tool.Text(fmt.Sprintf(
			"[%d of %d bytes of the diff; use read_file to look at the rest]", whole, len(diff)))}
	}
	return result, nil
}

// wholeText returns the whole text of a file.
func (w *workspace) wholeText(ctx context.Context, name string) (string, error) {
	f, err := w.openFile(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if f.size > snapshot.MaxDiff {
		return "", tool.Errorf(tool.ResourceExhausted, "%s has %d bytes, at most %d can be compared", display.VisibleName(f.path), f.size, snapshot.MaxDiff)
	}
	c, ok := textfile.Detect(f.head, f.whole())
	if !ok || textfile.IsMedia(f.mediaType) {
		return "", tool.Errorf(tool.Failed, "%s is not text: %s, %d bytes", display.VisibleName(f.path), f.mediaType, f.size)
	}
	f.charset = c
	all, err := f.scan(ctx, textfile.Window{Offset: 1, Limit: snapshot.MaxDiff, Budget: 4 * snapshot.MaxDiff}, 0, nil, true)
	if err != nil {
		return "", err
	}
	return strings.ToValidUTF8(string(all.Text), "\uFFFD"), nil
}
