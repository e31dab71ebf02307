package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/plugins/git/internal/porcelain"
	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type tagArgs struct {
	Path    string `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo" default:"."`
	Action  string `json:"action,omitempty" enum:"list,create,delete" default:"list" jsonschema:"what to do"`
	Name    string `json:"name,omitempty" jsonschema:"tag, or the only one to list"`
	Rev     string `json:"rev,omitempty" jsonschema:"commit of the new tag; default: HEAD"`
	Message string `json:"message,omitempty" jsonschema:"makes an annotated tag"`
	pageArgs
}

// Tags is the list of git_tag.
type Tags struct {
	Repo       string     `json:"repo" jsonschema:"the repository's directory, relative to the workspace"`
	Tags       []Tag      `json:"tags" jsonschema:"newest first"`
	Total      int        `json:"total"`
	NextCursor sdk.Cursor `json:"next_cursor,omitempty"`
}

// Tag is one tag.
type Tag struct {
	Name      display.Name `json:"name"`
	Commit    string       `json:"commit" jsonschema:"the tagged object, usually a commit"`
	Annotated bool         `json:"annotated,omitempty"`
	Date      string       `json:"date,omitempty" jsonschema:"the date of the tag, or else of its commit"`
	Subject   display.Line `json:"subject" jsonschema:"the subject of the tag, or else of its commit"`
}

// Text implements [sdk.Texter].
func (l Tags) Text() string {
	var b strings.Builder
	if len(l.Tags) == 0 {
		b.WriteString("No tags\n")
	}
	for _, t := range l.Tags {
		fmt.Fprintf(&b, "%s %s %s: %s\n", t.Name, short(t.Commit), t.Date[:min(len(t.Date), 10)], t.Subject)
	}
	writeNext(&b, l.NextCursor)
	return b.String()
}

// planTag lists the tags, or plans to create or delete one.
func planTag(ctx context.Context, s *access, in tagArgs) (change, error) {
	r, err := s.repository(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	if in.Action != "create" && in.Rev+in.Message != "" {
		return nil, tool.Errorf(tool.InvalidArgument, "rev or message is set without the action create").WithHint("set action to create to create a tag")
	}
	if in.Action == "list" {
		list, err := r.tags(ctx, in)
		return listing("git_tag", list), err
	}
	if err := r.checkTagName(ctx, in.Name); err != nil {
		return nil, err
	}
	if err := r.refuseSymbolic(ctx, "refs/tags/"+in.Name); err != nil {
		return nil, err
	}
	if in.Action == "delete" {
		return r.planDeleteTag(ctx, in.Name)
	}
	return r.planNewTag(ctx, in)
}

// checkTagName refuses a name that a tag cannot have.
func (r *repository) checkTagName(ctx context.Context, name string) error {
	bad := tool.Errorf(tool.InvalidArgument, "%s is not a valid tag name", display.Name(display.Cut(name, maxEcho))).WithHint(branchNameHint)
	if err := checkRevision(name); err != nil || strings.HasPrefix(name, "refs/") || name == "HEAD" {
		return bad
	}
	out, err := r.run(ctx, command{args: []string{"check-ref-format", "refs/tags/" + name}, exits: []int{1}})
	if err == nil && out.exit != 0 {
		return bad
	}
	return err
}

// tags lists the tags of one page.
func (r *repository) tags(ctx context.Context, in tagArgs) (Tags, error) {
	list := Tags{Repo: r.shown, Tags: []Tag{}}
	pattern := "refs/tags/"
	if in.Name != "" {
		if err := r.checkTagName(ctx, in.Name); err != nil {
			return list, err
		}
		pattern += in.Name
	}
	p := r.page(in.Limit, in.Cursor)
	var f []string
	records := porcelain.NewRecords(func(field []byte) error {
		if f = append(f, strings.TrimPrefix(string(field), "\n")); len(f) < 5 {
			return nil
		}
		t := Tag{
			Name: display.Name(strings.TrimPrefix(f[0], "refs/tags/")), Commit: f[1], Annotated: f[2] != "", Date: f[3],
			Subject: display.Line(display.Cut(f[4], maxEcho)),
		}
		if t.Annotated {
			t.Commit = f[2]
		}
		f = nil
		if (in.Name == "" || string(t.Name) == in.Name) && p.take(sizeOf(t)) {
			list.Tags = append(list.Tags, t)
		}
		return nil
	})
	const format = "%(refname)%00%(objectname)%00%(*objectname)%00%(creatordate:iso8601-strict)%00%(contents:subject)%00"
	args := []string{"for-each-ref", "--sort=-creatordate", "--format=" + format, "--", pattern}
	if _, err := r.run(ctx, command{args: args, output: records, maxOutput: maxListed}); err != nil {
		return list, err
	}
	_, _ = records.Write([]byte{0}) // ends the line break after the last tag; always succeeds
	err := records.Close()
	if err == nil && (len(f) != 1 || f[0] != "") {
		err = errors.New("the output ends within a tag")
	}
	if err != nil {
		return list, unreadable(err)
	}
	list.Total, list.NextCursor = p.seen, p.next()
	return list, nil
}

// tagging is a call of git_tag that creates a tag, or deletes one.
type tagging struct {
	*repository
	name    string
	at      Commit
	message string // "" for a tag without an object of its own
	author  identity
	old     string // the object of the tag to delete, or ""
}

func (r *repository) planNewTag(ctx context.Context, in tagArgs) (change, error) {
	c := &tagging{repository: r, name: in.Name}
	if there, err := r.exists(ctx, "refs/tags/"+in.Name); err != nil || there {
		if err == nil {
			err = tool.Errorf(tool.Conflict, "The tag %s already exists", display.Name(in.Name)).WithHint("use another name, or delete the tag first")
		}
		return nil, err
	}
	if in.Rev == "" {
		in.Rev = "HEAD"
	}
	id, err := r.commit(ctx, in.Rev)
	if err != nil {
		return nil, err
	}
	if c.at, err = r.describe(ctx, id); err != nil || in.Message == "" {
		return c, err
	}
	if c.message, err = cleanMessage(in.Message); err != nil {
		return nil, err
	}
	c.author, err = r.identity()
	return c, err
}

func (r *repository) planDeleteTag(ctx context.Context, name string) (change, error) {
	c := &tagging{repository: r, name: name}
	args := []string{"for-each-ref", "--format=%(refname)%00%(objectname)%00", "--", "refs/tags/" + name}
	out, err := r.run(ctx, command{args: args})
	if err != nil {
		return nil, err
	}
	for _, line := range out.lines() { // the pattern also matches tags below the name
		if f := strings.Split(line, "\x00"); len(f) == 3 && f[0] == "refs/tags/"+name {
			c.old = f[1]
			return c, nil
		}
	}
	return nil, tool.Errorf(tool.NotFound, "There is no tag %s", display.Name(name)).WithHint("list tags with git_tag")
}

func (c *tagging) State(context.Context) (string, error) {
	return stateOf("git_tag", c.gitDir, c.name, c.at.ID, c.message, c.author.name, c.author.email, c.old), nil
}

func (c *tagging) Show(context.Context) (string, []tool.Content, error) {
	if c.old != "" {
		return fmt.Sprintf("Deletes the tag %s (%s) in %s", display.Name(c.name), short(c.old), c.place()), nil, nil
	}
	summary := fmt.Sprintf("Creates the tag %s in %s at %s: %s", display.Name(c.name), c.place(), short(c.at.ID), c.at.Subject)
	if c.message == "" {
		return summary, nil, nil
	}
	return summary, []tool.Content{tool.Text(fmt.Sprintf("Tagger: %s <%s>\n\n%s", display.Line(c.author.name), display.Line(c.author.email), indented(c.message)))}, nil
}

func (c *tagging) Apply(ctx context.Context) (tool.Result, error) {
	ref := "refs/tags/" + c.name
	facts := map[string]any{"repo": c.shown, "tag": c.name}
	if c.old != "" {
		if _, err := c.run(ctx, command{args: []string{"update-ref", "--no-deref", "-d", ref, c.old}, writes: true, env: c.anybody()}); err != nil {
			return tool.Result{}, err
		}
		facts["before"] = c.old
		return done(facts, c.changedFiles(nil, "delete tag"), "Deleted the tag %s\nIt was at %s", display.Name(c.name), c.old), nil
	}
	facts["commit"] = c.at.ID
	add := command{args: []string{"update-ref", "--no-deref", ref, c.at.ID, strings.Repeat("0", len(c.at.ID))}, writes: true, env: c.anybody()}
	if c.message != "" {
		add = command{
			args:  []string{"tag", "--annotate", "--no-sign", "--cleanup=verbatim", "--file=-", "--end-of-options", c.name, c.at.ID},
			stdin: []byte(c.message), writes: true, env: c.author.environment(),
		}
	}
	if _, err := c.run(ctx, add); err != nil {
		return tool.Result{}, err
	}
	return done(facts, c.changedFiles(nil, "create tag"), "Created the tag %s at %s", display.Name(c.name), short(c.at.ID)), nil
}
