package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type showArgs struct {
	Path    string   `json:"path,omitempty" jsonschema:"repository" role:"path" alias:"repo" default:"."`
	Files   []string `json:"files,omitempty" jsonschema:"only these paths" role:"path" alias:"paths"`
	Rev     string   `json:"rev,omitempty" jsonschema:"revision" default:"HEAD"`
	Content bool     `json:"content,omitempty" jsonschema:"return the file at path" default:"false"`
	sdk.Paged
}

// Shown is the result of git_show: a commit with its changes, or a file in it.
type Shown struct {
	Repo   string     `json:"repo" jsonschema:"the repository's directory, relative to the workspace"`
	Commit Commit     `json:"commit"`
	Files  []FileDiff `json:"files" jsonschema:"the files that the commit changed, of a merge against its first parent; empty with cursor or content"`
	Total  int        `json:"total" jsonschema:"number of files that the commit changed"`
	Patch  string     `json:"patch,omitempty" jsonschema:"a unified diff, or a part of it"`

	LeftOut   int `json:"sensitive_left_out,omitempty" jsonschema:"number of files that are left out because they usually contain secrets; name a file in path to see it"`
	Forbidden int `json:"forbidden_left_out,omitempty" jsonschema:"number of files that are left out because the administrator has forbidden them for all calls"`

	Content    string     `json:"content,omitempty" jsonschema:"the file's content, or a part of it"`
	Bytes      int64      `json:"bytes,omitempty" jsonschema:"the size of the whole file in bytes"`
	Binary     bool       `json:"binary,omitempty" jsonschema:"the file is binary; its content is not returned"`
	NextCursor sdk.Cursor `json:"next_cursor,omitempty"`

	content bool
}

// Text implements [sdk.Texter].
func (s Shown) Text() string {
	var b strings.Builder
	switch {
	case s.Binary:
		fmt.Fprintf(&b, "[binary, %d bytes]\n", s.Bytes)
	case s.content:
		b.WriteString(s.Content)
	default:
		c := s.Commit
		fmt.Fprintf(&b, "commit %s\nAuthor: %s <%s>\nDate: %s\n\n    %s\n", c.ID, c.Author, c.Email, c.Date, c.Subject)
		b.WriteString(indented(c.Body) + "\n" + s.Patch + leftOutNote(s.LeftOut, s.Forbidden))
	}
	writeNext(&b, s.NextCursor)
	return b.String()
}

// maxShownBody is the maximum length of a message in git_show, in bytes.
const maxShownBody = 8 << 10

// show runs git_show.
func show(ctx context.Context, s *access, in showArgs) (Shown, error) {
	r, err := s.repository(ctx, in.Path)
	if err != nil {
		return Shown{}, err
	}
	id, err := r.commit(ctx, in.Rev)
	if err != nil {
		return Shown{}, err
	}
	result := Shown{Repo: r.shown, content: in.Content}
	if result.Commit, err = r.describe(ctx, id); err != nil {
		return Shown{}, err
	}
	if in.Content {
		return result, r.showFile(ctx, &result, id, in.Cursor)
	}
	paths, err := r.chosen(in.Files)
	if err != nil {
		return Shown{}, err
	}
	what, err := r.withoutSensitive([]string{"--root", "--no-commit-id", "-r", "--diff-merges=first-parent", id}, paths)
	if err != nil {
		return Shown{}, err
	}
	room := s.budget - overhead - result.Commit.size()
	var d Diff
	if err := r.readDiff(ctx, &d, "diff-tree", what, in.Cursor, room); err != nil {
		return Shown{}, err
	}
	result.Files, result.Total, result.Patch, result.NextCursor = d.Files, d.Total, d.Patch, d.NextCursor
	result.LeftOut, result.Forbidden = d.LeftOut, d.Forbidden
	return result, nil
}

// describe returns the description of a commit.
func (r *repository) describe(ctx context.Context, id string) (Commit, error) {
	var found Commit
	records := porcelain.NewCommits(func(c porcelain.Commit) error {
		found = newCommit(c, min(maxShownBody, r.budget/4))
		return nil
	})
	err := r.read(ctx, command{args: commitLog(1, id, "--")}, records)
	return found, err
}

// showFile adds the content of the focus in a commit to result.
func (r *repository) showFile(ctx context.Context, result *Shown, commit string, cursor sdk.Cursor) error {
	if r.focus == "." {
		return tool.Errorf(tool.InvalidArgument, "content is set, but path is not a file").WithHint("set path to the file, or omit content to see the commit")
	}
	if err := r.refuseSensitive(); err != nil {
		return err
	}
	blob, size, err := r.blob(ctx, commit, r.focus)
	if err != nil {
		return err
	}
	result.Bytes = size
	w, err := r.window(cursor, r.budget-overhead-result.Commit.size())
	if err != nil {
		return err
	}
	if _, err := r.run(ctx, command{args: []string{"cat-file", "blob", blob}, output: w, maxOutput: tool.TiB}); err != nil {
		return err
	}
	if cursor == "" && bytes.IndexByte(w.kept[:min(len(w.kept), 8000)], 0) >= 0 {
		result.Binary = true
		return nil
	}
	result.Content, result.NextCursor, err = w.take()
	return err
}

// blob returns the object id and size of a file in a commit.
func (r *repository) blob(ctx context.Context, commit, path string) (id string, size int64, err error) {
	out, err := r.run(ctx, command{args: []string{"ls-tree", "-z", "-l", "--full-tree", commit, "--", path}})
	if err != nil {
		return "", 0, err
	}
	var mode, kind string
	line, _, found := strings.Cut(string(out.stdout), "\x00")
	head, name, _ := strings.Cut(line, "\t")
	if !found || name != path {
		return "", 0, tool.Errorf(tool.NotFound, "There is no %s in the commit %s", r.show(path), short(commit)).
			WithHint("find the commits that changed it with git_log and this path")
	}
	if _, err := fmt.Sscan(head, &mode, &kind, &id, new(string)); err != nil {
		return "", 0, unreadable(err)
	}
	if kind != "blob" {
		return "", 0, tool.Errorf(tool.InvalidArgument, "%s is not a file in the commit %s", r.show(path), short(commit)).
			WithHint("set path to a file")
	}
	if _, err := fmt.Sscan(head, &mode, &kind, &id, &size); err != nil {
		return "", 0, unreadable(err)
	}
	return id, size, nil
}
