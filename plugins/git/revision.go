package main

import (
	"context"
	"regexp"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/sdk/tool"
)

// maxRevision bounds the text of a revision.
const maxRevision = 1024

// checkRevision refuses what git could take for an option, or for more than one
// revision.
func checkRevision(rev string) error {
	switch {
	case rev == "":
		return tool.Errorf(tool.InvalidArgument, "a revision is empty").WithHint("name a commit, branch or tag")
	case strings.HasPrefix(rev, "-"):
		return tool.Errorf(tool.InvalidArgument, "the revision %q begins with \"-\"", cut(rev)).WithHint("name a commit, branch or tag; options cannot be given")
	case len(rev) > maxRevision || strings.ContainsFunc(rev, unicode.IsControl):
		return tool.Errorf(tool.InvalidArgument, "the revision %q is none", cut(rev)).WithHint("name a commit, branch or tag")
	}
	return nil
}

// ambiguous is what git says of a name that several references have.
var ambiguous = regexp.MustCompile(`(?m)^warning: refname '(.*)' is ambiguous\.$`)

func cut(text string) string { return strings.ToValidUTF8(text[:min(len(text), 80)], "") }

// commits returns the object ids of the commits that revisions name. Git reads them
// from its input, where nothing is an option.
func (r *repository) commits(ctx context.Context, revs ...string) ([]string, error) {
	var input strings.Builder
	for _, rev := range revs {
		if err := checkRevision(rev); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(rev, ":/") { // the rest is a text to look for, and finds commits only
			rev += "^{commit}"
		}
		input.WriteString(rev + "\n")
	}
	out, err := r.run(ctx, command{args: []string{"cat-file", "--batch-check=%(objectname) %(objecttype)"}, stdin: []byte(input.String())})
	if err != nil {
		return nil, err
	}
	for _, found := range ambiguous.FindAllStringSubmatch(out.stderr, -1) {
		if name := found[1]; name != "HEAD" && !strings.HasPrefix(name, "refs/") { // which git takes for what they say
			return nil, tool.Errorf(tool.InvalidArgument, "%s names more than one thing", tool.VisibleName(cut(name))).
				WithHint("name it in full: refs/heads/ and the branch, refs/tags/ and the tag, or the commit's id")
		}
	}
	lines := out.lines()
	if len(lines) != len(revs) {
		return nil, tool.Errorf(tool.Failed, "git cannot say which commits are meant")
	}
	var ids []string
	for i, rev := range revs {
		id, kind, _ := strings.Cut(lines[i], " ")
		if kind != "commit" {
			return nil, noCommit(rev, strings.HasSuffix(lines[i], " ambiguous"))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// commit is commits for one.
func (r *repository) commit(ctx context.Context, rev string) (string, error) {
	ids, err := r.commits(ctx, rev)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// exact is commit for the full name of a reference. Without the reference, git would
// take it for the name of a branch or tag: refs/heads/refs/stash.
func (r *repository) exact(ctx context.Context, ref string) (string, error) {
	there, err := r.exists(ctx, ref)
	if err != nil {
		return "", err
	}
	if !there {
		return "", noCommit(ref, false)
	}
	return r.commit(ctx, ref)
}

// exists reports whether there is a reference of this full name.
func (r *repository) exists(ctx context.Context, ref string) (bool, error) {
	if err := checkRevision(ref); err != nil {
		return false, err
	}
	out, err := r.run(ctx, command{args: []string{"show-ref", "--verify", "--quiet", "--", ref}, exits: []int{1}})
	return err == nil && out.exit == 0, err
}

func noCommit(rev string, ambiguous bool) *tool.Error {
	if ambiguous {
		return tool.Errorf(tool.InvalidArgument, "Several commits begin with %s", tool.VisibleName(cut(rev))).WithHint("give more of the commit's id")
	}
	return tool.Errorf(tool.NotFound, "There is no commit %s", tool.VisibleName(cut(rev))).
		WithHint("git_log and git_branch show which there are; of a file, name the commit and the path apart")
}

// isMissing reports whether an error says that there is no such commit.
func isMissing(err error) bool {
	known := tool.AsError(err)
	return known != nil && known.Code == tool.NotFound
}

// splitRange takes a range of revisions apart: "a..b", "a...b", or one alone.
func splitRange(text string) (from, dots, to string) {
	for _, dots := range []string{"...", ".."} {
		if from, to, ok := strings.Cut(text, dots); ok && !strings.HasPrefix(text, ":/") {
			if from == "" {
				from = "HEAD"
			}
			if to == "" {
				to = "HEAD"
			}
			return from, dots, to
		}
	}
	return "", "", text
}

// revisions returns what git log takes for a revision or a range of them: object ids.
func (r *repository) revisions(ctx context.Context, text string) (string, error) {
	from, dots, to := splitRange(text)
	if dots == "" {
		return r.commit(ctx, to)
	}
	ids, err := r.commits(ctx, from, to)
	if err != nil {
		return "", err
	}
	return ids[0] + dots + ids[1], nil
}
