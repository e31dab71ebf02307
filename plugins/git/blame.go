package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type blameArgs struct {
	Path  string `json:"path" jsonschema:"file" role:"path" alias:"file,repo"`
	Rev   string `json:"rev,omitempty" jsonschema:"revision"`
	Lines string `json:"lines,omitempty" jsonschema:"10, 10-20 or 10-"`
	sdk.Paged
}

// Blamed is the result of git_blame: the lines of a file with their commits.
type Blamed struct {
	Path       display.Name `json:"path"`
	Hunks      []BlamedHunk `json:"hunks" jsonschema:"consecutive lines from the same commit"`
	NextCursor sdk.Cursor   `json:"next_cursor,omitempty"`
}

// BlamedHunk is a run of lines from one commit.
type BlamedHunk struct {
	First   int          `json:"first" jsonschema:"the number of the first line"`
	Commit  string       `json:"commit" jsonschema:"the commit's id; all zeros if the lines are not committed"`
	Author  display.Line `json:"author"`
	Date    string       `json:"date"`
	Summary display.Line `json:"summary"`
	Lines   []string     `json:"lines"`
}

// Text implements [sdk.Texter].
func (b Blamed) Text() string {
	var text strings.Builder
	for _, h := range b.Hunks {
		fmt.Fprintf(&text, "%s %s %s: %s\n", short(h.Commit), h.Date[:min(len(h.Date), 10)], h.Author, h.Summary)
		for i, line := range h.Lines {
			fmt.Fprintf(&text, "%6d  %s\n", h.First+i, line)
		}
	}
	writeNext(&text, b.NextCursor)
	return text.String()
}

// blame runs git_blame.
func blame(ctx context.Context, s *access, in blameArgs) (Blamed, error) {
	r, err := s.repository(ctx, in.Path)
	if err != nil {
		return Blamed{}, err
	}
	if r.focus == "." {
		return Blamed{}, tool.Errorf(tool.InvalidArgument, "%s is not a file", display.Name(in.Path)).WithHint("set path to a file")
	}
	if err := r.refuseSensitive(); err != nil {
		return Blamed{}, err
	}
	first, last, err := lineRange(in.Lines)
	if err != nil {
		return Blamed{}, err
	}
	if in.Cursor != "" {
		from, _ := in.Cursor.Position()
		if int(from) <= first || last > 0 && int(from) > last {
			return Blamed{}, in.Cursor.Refuse()
		}
		first = int(from)
	}
	args := []string{"blame", "--porcelain", "--no-textconv", "--no-progress", "--no-color-lines"}
	if first > 1 || last > 0 {
		lines := strconv.Itoa(first) + ","
		if last > 0 {
			lines += strconv.Itoa(last)
		}
		args = append(args, "-L"+lines)
	}
	if in.Rev != "" {
		id, err := r.commit(ctx, in.Rev)
		if err != nil {
			return Blamed{}, err
		}
		args = append(args, id)
	}
	result := Blamed{Path: r.show(r.focus)}
	p := &page{limit: maxLimit, room: s.budget - overhead}
	parser := porcelain.NewBlame(func(line porcelain.Line) { result.add(line, p) })
	if err := r.read(ctx, command{args: append(args, "--", r.focus)}, parser); err != nil {
		return Blamed{}, err
	}
	if p.more {
		result.NextCursor = sdk.CursorAt(int64(first+p.shown), "")
	}
	return result, nil
}

// maxBlamed is the maximum length of a line in a result, in bytes.
const maxBlamed = 2000

func (b *Blamed) add(line porcelain.Line, p *page) {
	line.Text = display.Cut(line.Text, maxBlamed)
	n := len(b.Hunks)
	same := n > 0 && b.Hunks[n-1].Commit == line.Commit.ID && b.Hunks[n-1].First+len(b.Hunks[n-1].Lines) == line.Number
	size := display.JSONSize(line.Text) + 10
	if !same {
		size += 160 + display.JSONSize(line.Commit.Author) + display.JSONSize(line.Commit.Summary)
	}
	if !p.take(size) {
		return
	}
	if !same {
		c := line.Commit
		b.Hunks = append(b.Hunks, BlamedHunk{First: line.Number, Commit: c.ID, Author: display.Line(c.Author), Date: c.Date.Format(time.RFC3339), Summary: display.Line(c.Summary)})
		n++
	}
	b.Hunks[n-1].Lines = append(b.Hunks[n-1].Lines, line.Text)
}

// lineRange parses a range of lines. last is 0 if the range extends to the end.
func lineRange(text string) (first, last int, err error) {
	if text == "" {
		return 1, 0, nil
	}
	wrong := tool.Errorf(tool.InvalidArgument, "lines is %q, expected 10, 10-20 or 10-", display.Cut(text, maxEcho))
	from, to, ranged := strings.Cut(text, "-")
	if first, err = strconv.Atoi(from); err != nil || first < 1 {
		return 0, 0, wrong
	}
	switch {
	case !ranged:
		last = first
	case to != "":
		if last, err = strconv.Atoi(to); err != nil || last < first {
			return 0, 0, wrong
		}
	}
	return first, last, nil
}
