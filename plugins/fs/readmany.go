package main

import (
	"context"
	"fmt"

	"github.com/toolhost/toolhost/plugins/fs/internal/page"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxFiles is how many files one call reads.
const maxFiles = 100

type readFilesArgs struct {
	Paths []string        `json:"paths,omitempty" jsonschema:"files to read" role:"path" max:"100" alias:"files,file_paths"`
	Items []readFilesItem `json:"items,omitempty" jsonschema:"parts of files" max:"100"`
}

// items returns what to read, in one form.
func (in *readFilesArgs) items() ([]readFilesItem, error) {
	var items []readFilesItem
	for _, path := range in.Paths {
		items = append(items, readFilesItem{Path: path})
	}
	items = append(items, in.Items...)
	if len(items) == 0 || len(items) > maxFiles {
		return nil, tool.Errorf(tool.InvalidArgument, "paths and items have %d files together, expected 1 to %d", len(items), maxFiles)
	}
	return items, nil
}

type readFilesItem struct {
	Path string `json:"path" jsonschema:"file" role:"path" alias:"file_path,filename"`
	lineRange
}

// readFiles is the tool read_files. An error with one file is shown in its place.
func readFiles(ctx context.Context, w *workspace, in readFilesArgs) (tool.Result, error) {
	items, err := in.items()
	if err != nil {
		return tool.Result{}, err
	}
	var result tool.Result
	var facts []map[string]any
	failed := 0
	left := w.budget
	for i, item := range items {
		// The files that follow share what one file leaves of the budget.
		share := *w
		share.budget, share.maxRead = left/(len(items)-i), w.maxRead/len(items)
		read, err := share.read(ctx, readFileArgs{Path: item.Path, lineRange: item.lineRange})
		if ctx.Err() != nil {
			return tool.Result{}, context.Cause(ctx)
		}
		if err != nil {
			failed++
			read = notRead(item.Path, tool.AsError(err))
		}
		header := tool.Text(fmt.Sprintf("==> %s <==", display.VisibleName(item.Path)))
		result.Content = append(append(result.Content, header), read.Content...)
		facts = append(facts, read.Metadata)
		for _, c := range read.Content {
			if c.IsText() {
				left -= len(c.Data)
			}
		}
		left -= len(header.Data)
	}
	result.Metadata = map[string]any{"files": facts, "failed": failed}
	if failed == len(items) {
		result.Error = tool.Errorf(tool.Failed, "None of the %d files could be read", failed)
	}
	return result, nil
}

// notRead describes a file that cannot be read.
func notRead(path string, err *tool.Error) tool.Result {
	text, facts := page.Shorten(err.Message, page.MaxNote), map[string]any{"path": path, "error": err.Code}
	if err.Hint != "" {
		text += "; " + page.Shorten(err.Hint, page.MaxNote)
		facts["hint"] = err.Hint
	}
	result := tool.TextResult("[" + text + "]")
	result.Metadata = facts
	return result
}
