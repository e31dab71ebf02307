package main

import (
	"context"

	"github.com/toolhost/toolhost/plugins/fs/internal/grep"

	"github.com/toolhost/toolhost/sdk/tool"
)

type searchContentArgs struct {
	Pattern    string   `json:"pattern" jsonschema:"regular expression (RE2) to find in the lines of files" min:"1" max:"4096" alias:"query,regex"`
	Path       string   `json:"path,omitempty" jsonschema:"the directory or file to search, relative to the workspace or absolute below it" role:"path" alias:"dir,directory" default:"."`
	Literal    bool     `json:"literal,omitempty" jsonschema:"take the pattern as plain text" default:"false"`
	Case       string   `json:"case,omitempty" jsonschema:"smart ignores case unless the pattern has a capital letter" enum:"smart,sensitive,insensitive" default:"smart"`
	Word       bool     `json:"word,omitempty" jsonschema:"find the pattern only where no letter, digit or _ is right before or after it" default:"false"`
	Globs      []string `json:"globs,omitempty" jsonschema:"search only files that match one of these globs, such as *.go; one that begins with ! leaves out files and directories"`
	Types      []string `json:"types,omitempty" jsonschema:"search only files of these languages" enum:"c,cpp,css,go,html,java,javascript,json,kotlin,lua,markdown,php,proto,python,ruby,rust,shell,sql,swift,toml,typescript,xml,yaml"`
	Before     int      `json:"before,omitempty" jsonschema:"how many lines to show before each match" min:"0" max:"50" default:"0"`
	After      int      `json:"after,omitempty" jsonschema:"how many lines to show after each match" min:"0" max:"50" default:"0"`
	Multiline  bool     `json:"multiline,omitempty" jsonschema:"let the pattern match across line ends, in files up to 16 MiB" default:"false"`
	Mode       string   `json:"mode,omitempty" jsonschema:"what to return: the matching lines, the names of files that have any, or how many each has" enum:"content,files,count" default:"content"`
	Gitignore  bool     `json:"gitignore,omitempty" jsonschema:"leave out files that .gitignore files name" default:"true"`
	MaxResults int      `json:"max_results,omitempty" jsonschema:"stop after this many matching lines, or files" min:"1" max:"10000" default:"200"`
}

// searchContent is the tool search_content.
func searchContent(ctx context.Context, w *workspace, in searchContentArgs) (tool.Result, error) {
	return grep.Run(ctx, w.Roots, in.query(), w.budget)
}

// query returns what the arguments ask for.
func (in *searchContentArgs) query() grep.Query {
	return grep.Query{
		Pattern: in.Pattern, Path: in.Path, Literal: in.Literal, Case: in.Case, Word: in.Word, Multiline: in.Multiline,
		Globs: in.Globs, Types: in.Types, Gitignore: in.Gitignore,
		Mode: in.Mode, Before: in.Before, After: in.After, MaxResults: in.MaxResults,
	}
}
