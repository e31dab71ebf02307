package main

import (
	"cmp"
	"context"

	"github.com/toolhost/toolhost/plugins/fs/internal/grep"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

const (
	// maxPattern is the maximum length of a pattern in bytes.
	maxPattern = 4096
	// maxAround is how many lines are shown before and after a match at most.
	maxAround = 50
)

type searchContentArgs struct {
	Pattern    string   `json:"pattern" jsonschema:"what to find" alias:"query,regex"`
	Path       string   `json:"path,omitempty" jsonschema:"directory or file" role:"path" alias:"dir,directory,file_path" default:"."`
	Globs      []string `json:"globs,omitempty" jsonschema:"such as *.go; ! excludes" alias:"glob,include"`
	Types      []string `json:"types,omitempty" jsonschema:"languages such as go" alias:"type"`
	Literal    bool     `json:"literal,omitempty" jsonschema:"pattern is plain text"`
	Word       bool     `json:"word,omitempty" jsonschema:"whole words"`
	IgnoreCase *bool    `json:"ignore_case,omitempty" jsonschema:"default: if pattern is lower case" alias:"-i"`
	Multiline  bool     `json:"multiline,omitempty" jsonschema:"match across lines"`
	Before     int      `json:"before,omitempty" jsonschema:"lines before a match" alias:"-B"`
	After      int      `json:"after,omitempty" jsonschema:"lines after" alias:"-A"`
	Context    int      `json:"context,omitempty" jsonschema:"lines around" alias:"-C"`
	OutputMode string   `json:"output_mode,omitempty" jsonschema:"what to return" enum:"content,files_with_matches,count" default:"content" alias:"mode"`
	Gitignore  bool     `json:"gitignore,omitempty" jsonschema:"skip what git ignores" default:"true"`
	MaxResults int      `json:"max_results,omitempty" jsonschema:"most lines or files" min:"1" default:"200" alias:"head_limit"`
	Numbers    *bool    `json:"numbers,omitempty" jsonschema:"always on" alias:"-n"`
	sdk.Paged
}

// searchContent is the tool search_content.
func searchContent(ctx context.Context, w *workspace, in searchContentArgs) (tool.Result, error) {
	switch n := len(in.Pattern); {
	case n == 0, n > maxPattern:
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "pattern has %d bytes, expected 1 to %d", n, maxPattern)
	case min(in.Before, in.After, in.Context) < 0, max(in.Before, in.After, in.Context) > maxAround:
		return tool.Result{}, tool.Errorf(tool.InvalidArgument, "before, after and context are %d, %d and %d, expected 0 to %d", in.Before, in.After, in.Context, maxAround)
	}
	return grep.Run(ctx, w.Roots, in.query(), w.budget)
}

// query returns the query of the arguments.
func (in *searchContentArgs) query() grep.Query {
	letterCase := "smart"
	if in.IgnoreCase != nil {
		letterCase = map[bool]string{true: "insensitive", false: "sensitive"}[*in.IgnoreCase]
	}
	return grep.Query{
		Pattern: in.Pattern, Path: in.Path, Literal: in.Literal, Case: letterCase, Word: in.Word, Multiline: in.Multiline,
		Globs: in.Globs, Types: in.Types, Gitignore: in.Gitignore,
		Mode: in.OutputMode, Before: cmp.Or(in.Before, in.Context), After: cmp.Or(in.After, in.Context), MaxResults: in.MaxResults, Cursor: in.Cursor,
	}
}
