package main

import (
	"context"
	"fmt"

	"github.com/toolhost/toolhost/plugins/fs/internal/page"

	"github.com/toolhost/toolhost/sdk/tool"
)

type readFilesArgs struct {
	Items []readFilesItem `json:"items" jsonschema:"the files to read" min:"1" max:"100"`
}

type readFilesItem struct {
	Path string `json:"path" jsonschema:"the file to read, relative to the workspace or absolute below it" role:"path" alias:"file_path,filename"`
	lineRange
}

// readFiles is the tool read_files. What cannot be read is told in its place.
func readFiles(ctx context.Context, w *workspace, in readFilesArgs) (tool.Result, error) {
	var result tool.Result
	var facts []map[string]any
	failed := 0
	left := w.budget
	for i, item := range in.Items {
		// What one file leaves over is for those that follow.
		share := *w
		share.budget = left / (len(in.Items) - i)
		read, err := share.read(ctx, item.Path, item.lineRange, "auto")
		if ctx.Err() != nil {
			return tool.Result{}, context.Cause(ctx)
		}
		if err != nil {
			failed++
			read = notRead(item.Path, tool.AsError(err))
		}
		header := tool.Text(fmt.Sprintf("==> %s <==", tool.VisibleName(item.Path)))
		result.Content = append(append(result.Content, header), read.Content...)
		facts = append(facts, read.Metadata)
		for _, c := range read.Content {
			left -= len(c.Data)
		}
		left -= len(header.Data)
	}
	result.Metadata = map[string]any{"files": facts, "failed": failed}
	if failed == len(in.Items) {
		result.Error = tool.Errorf(tool.Failed, "None of the %d files could be read", failed)
	}
	return result, nil
}

// notRead stands in the place of a file that cannot be read.
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
