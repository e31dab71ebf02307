package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

type mergeArgs struct {
	Path    string `json:"path,omitempty" jsonschema:"repository" role:"repository" alias:"repo" default:"."`
	Rev     string `json:"rev,omitempty" jsonschema:"branch or commit to merge" alias:"branch"`
	Message string `json:"message,omitempty" jsonschema:"message of the merge commit"`
	FF      string `json:"ff,omitempty" jsonschema:"fast-forward" enum:"auto,only,never" default:"auto"`
	Abort   bool   `json:"abort,omitempty" jsonschema:"undo the merge in progress" default:"false"`
}

// merging is a call of git_merge.
type merging struct {
	*applying
	name string   // what the call merges
	in   []Commit // the commits that come in, see between
}

// planMerge computes the merge of a call of git_merge.
func planMerge(ctx context.Context, s *access, in mergeArgs) (change, error) {
	if in.Abort {
		return planAbort(ctx, s, in.Path, "merge")
	}
	if in.Rev == "" {
		return nil, tool.Errorf(tool.InvalidArgument, "rev is missing").WithHint("name the branch or commit to merge; git_branch lists branches")
	}
	a, err := s.beginApplying(ctx, in.Path, "merge")
	if err != nil {
		return nil, err
	}
	c := &merging{applying: a, name: in.Rev}
	to, err := a.commit(ctx, in.Rev)
	if err != nil {
		return nil, err
	}
	a.from = source{id: a.head.Commit}
	if c.in, err = a.between(ctx, to, a.head.Commit); err != nil {
		return nil, err
	}
	if len(c.in) == 0 {
		return listing("git_merge", upToDate(fmt.Sprintf("Already up to date: %s has all commits of %s", a.head.head(), display.Name(in.Rev)))), nil
	}
	if in.FF != "never" {
		forward, err := c.isForward(ctx, to)
		if err != nil {
			return nil, err
		}
		if forward {
			a.forward = to
			return c, a.check(ctx, a.repository)
		}
	}
	if in.FF == "only" {
		return nil, tool.Errorf(tool.Conflict, "%s cannot be fast-forwarded: it has commits that %s lacks", a.head.head(), display.Name(in.Rev)).WithHint("repeat the call with ff auto")
	}
	return c, c.planCommit(ctx, source{id: to}, in)
}

// isForward reports whether the history of to contains HEAD. Then HEAD is a parent of a
// commit that comes in, which costs no run of git unless there are more than are listed.
func (c *merging) isForward(ctx context.Context, to string) (bool, error) {
	for _, commit := range c.in {
		if slices.Contains(commit.Parents, c.head.Commit) {
			return true, nil
		}
	}
	if len(c.in) <= maxBetween {
		return false, nil
	}
	return c.contains(ctx, to, c.head.Commit)
}

// planCommit plans a merge commit.
func (c *merging) planCommit(ctx context.Context, other source, in mergeArgs) (err error) {
	if c.author, err = c.identity(); err != nil {
		return err
	}
	message := cmp.Or(in.Message, fmt.Sprintf("Merge %s into %s", in.Rev, cmp.Or(c.head.Name, "HEAD")))
	if message, err = cleanMessage(message); err != nil {
		return err
	}
	label := short(other.id)
	if len(in.Rev) < 40 && plainName.MatchString(in.Rev) {
		label = in.Rev
	}
	c.steps = []step{{source: other, merged: other.id, label: label, message: message}}
	return c.plan(ctx)
}

// plainName matches some valid names of branches, to be used in conflict markers.
var plainName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*(?:/[A-Za-z0-9_-]+)*$`)

// upToDate is the result of a call that has nothing to do.
type upToDate string

// Text implements [sdk.Texter].
func (u upToDate) Text() string { return string(u) }

// MarshalJSON implements [json.Marshaler].
func (u upToDate) MarshalJSON() ([]byte, error) { return []byte(`{"up_to_date":true}`), nil }

func (c *merging) Show(context.Context) (string, []tool.Content, error) {
	does := fmt.Sprintf("Merges %s (%s) into", display.Name(c.name), short(c.other()))
	if c.forward != "" {
		does = fmt.Sprintf("Fast-forwards to %s (%s)", display.Name(c.name), short(c.other()))
	}
	summary := fmt.Sprintf("%s %s of %s: %s, %s", does, c.head.head(), c.place(), countOf(c.in), c.size())
	if !c.clean() {
		summary += "; conflicts in " + display.Plural(len(c.paths), "file")
	}
	content := c.content("Commits that come in:", c.in)
	if c.forward == "" {
		about := fmt.Sprintf("Author: %s <%s>\n\n%s\n", display.Line(c.author.name), display.Line(c.author.email), indented(c.steps[0].message))
		content = append([]tool.Content{tool.Text(about)}, content...)
	}
	return summary, content, nil
}

// other returns the commit that is merged.
func (c *merging) other() string {
	if c.forward != "" {
		return c.forward
	}
	return c.steps[0].id
}
