package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
)

type logArgs struct {
	Path   string   `json:"path,omitempty" jsonschema:"repository" role:"path" alias:"repo" default:"."`
	Files  []string `json:"files,omitempty" jsonschema:"only these paths" role:"path" alias:"paths"`
	Limit  int      `json:"limit,omitempty" jsonschema:"most commits" min:"1" max:"1000" default:"20"`
	Rev    string   `json:"rev,omitempty" jsonschema:"revision, or range such as a..b"`
	Author string   `json:"author,omitempty" jsonschema:"in name or email"`
	Grep   string   `json:"grep,omitempty" jsonschema:"in the message"`
	Since  string   `json:"since,omitempty" jsonschema:"such as 2 weeks ago"`
	Until  string   `json:"until,omitempty" jsonschema:"like since"`
	sdk.Paged
}

// Log is the result of git_log.
type Log struct {
	Repo       string     `json:"repo" jsonschema:"the repository's directory, relative to the workspace"`
	Commits    []Commit   `json:"commits" jsonschema:"newest first"`
	NextCursor sdk.Cursor `json:"next_cursor,omitempty"`
}

// Commit is one commit.
type Commit struct {
	ID        string       `json:"id"`
	Parents   []string     `json:"parents,omitempty" jsonschema:"in a list, only for merges"`
	Author    display.Line `json:"author"`
	Email     display.Line `json:"email"`
	Date      string       `json:"date" jsonschema:"the author's date, ISO 8601"`
	Committer display.Line `json:"committer,omitempty" jsonschema:"the committer, if different from the author"`
	Subject   display.Line `json:"subject"`
	Body      string       `json:"body,omitempty" jsonschema:"the rest of the message; shortened in a list"`
}

// Text implements [sdk.Texter].
func (l Log) Text() string {
	var b strings.Builder
	if len(l.Commits) == 0 {
		b.WriteString("No commits\n")
	}
	for _, c := range l.Commits {
		b.WriteString(c.line() + "\n" + indented(c.Body))
	}
	writeNext(&b, l.NextCursor)
	return b.String()
}

// line describes the commit on one line.
func (c *Commit) line() string {
	return fmt.Sprintf("%s %s %s: %s", short(c.ID), c.Date[:min(len(c.Date), 10)], c.Author, c.Subject)
}

// indented indents the lines of a message.
func indented(body string) string {
	var b strings.Builder
	for line := range strings.Lines(body) {
		b.WriteString("    " + strings.TrimRight(display.Visible(line), "\n") + "\n")
	}
	return b.String()
}

// maxBody is the maximum length of a message in a list, in bytes.
const maxBody = 1000

// log runs git_log.
func log(ctx context.Context, s *access, in logArgs) (Log, error) {
	for _, text := range []struct{ name, value string }{{"author", in.Author}, {"grep", in.Grep}, {"since", in.Since}, {"until", in.Until}} {
		if err := checkText(text.name, text.value); err != nil {
			return Log{}, err
		}
	}
	r, err := s.repository(ctx, in.Path)
	if err != nil {
		return Log{}, err
	}
	paths, err := r.chosen(in.Files)
	if err != nil {
		return Log{}, err
	}
	begin, skip, err := r.begin(ctx, in)
	if err != nil {
		return Log{}, err
	}
	args := commitLog(in.Limit+1, "--no-follow", "--skip="+strconv.Itoa(skip), "--regexp-ignore-case", "--fixed-strings")
	for _, filter := range []struct{ flag, value string }{{"--author=", in.Author}, {"--grep=", in.Grep}, {"--since=", in.Since}, {"--until=", in.Until}} {
		if filter.value != "" {
			args = append(args, filter.flag+filter.value)
		}
	}
	result := Log{Repo: r.shown}
	p := &page{limit: in.Limit, room: s.budget - overhead}
	records := porcelain.NewCommits(func(c porcelain.Commit) error {
		found := newCommit(c, maxBody)
		if len(found.Parents) == 1 {
			found.Parents = nil // usually the next commit in the list
		}
		if p.take(found.size()) {
			result.Commits = append(result.Commits, found)
		}
		return nil
	})
	args = append(args, "--end-of-options")
	if begin != "HEAD" { // without HEAD, git distinguishes a damaged branch from one without commits
		args = append(args, begin)
	}
	args = append(args, "--")
	err = r.read(ctx, command{args: append(args, paths...)}, records)
	if isMissing(err) && begin == "HEAD" {
		return result, nil // there is no commit yet
	}
	if err != nil {
		return Log{}, err
	}
	if p.more {
		result.NextCursor, err = r.logCursor(ctx, begin, skip+p.shown)
	}
	filtered := in.Author+in.Grep+in.Since+in.Until != "" || strings.Contains(begin, "..")
	if p.seen == 0 && skip == 0 && !filtered { // the history does not have the path either
		err = r.refuseMissing(paths)
	}
	return result, err
}

// commitLog returns the arguments for a log of at most most commits that
// [porcelain.NewCommits] reads. They override the configuration.
func commitLog(most int, args ...string) []string {
	return append([]string{
		"log", "-z", porcelain.CommitFormat, "--no-color", "--no-show-signature", "--no-mailmap", "--no-notes", "--no-patch",
		"--max-count=" + strconv.Itoa(most),
	}, args...)
}

// begin returns the revision that a log starts from and the number of commits to skip.
func (r *repository) begin(ctx context.Context, in logArgs) (rev string, skip int, err error) {
	if in.Cursor != "" {
		skip, rev := in.Cursor.Position()
		if skip < 1 || strings.Trim(rev, "0123456789abcdef.") != "" || rev == "" {
			return "", 0, in.Cursor.Refuse()
		}
		return rev, int(skip), nil
	}
	if in.Rev == "" {
		return "HEAD", 0, nil
	}
	rev, err = r.revisions(ctx, in.Rev)
	return rev, 0, err
}

// logCursor returns the cursor of the commits that follow. It stays valid if the branch
// moves.
func (r *repository) logCursor(ctx context.Context, begin string, skip int) (sdk.Cursor, error) {
	if begin == "HEAD" {
		var err error
		if begin, err = r.commit(ctx, begin); err != nil {
			return "", err
		}
	}
	return sdk.CursorAt(int64(skip), begin), nil
}

func newCommit(c porcelain.Commit, most int) Commit {
	found := Commit{
		ID: c.ID, Parents: c.Parents, Author: display.Line(c.Author), Email: display.Line(c.Email), Date: c.Date,
		Subject: display.Line(display.Cut(c.Subject, most)), Body: display.Cut(c.MessageBody, most),
	}
	if c.Committer != c.Author {
		found.Committer = display.Line(c.Committer)
	}
	return found
}

// size returns the maximum size of the commit in a result, in bytes.
func (c *Commit) size() int {
	size := 130 + len(c.ID) + len(c.Date) + (len(c.ID)+3)*len(c.Parents)
	return size + display.JSONSize(c.Author) + display.JSONSize(c.Email) + display.JSONSize(c.Committer) + display.JSONSize(c.Subject) + display.JSONSize(c.Body)
}
