package main

import (
	"context"
	"regexp"
	"strings"
	"unicode"

	"github.com/toolhost/toolhost/sdk/display"
	"github.com/toolhost/toolhost/sdk/tool"
)

// maxRevision is the maximum length of a revision in bytes.
const maxRevision = 1024

// checkRevision refuses a text that git could read as an option or as several revisions.
func checkRevision(rev string) error {
	switch {
	case rev == "":
		return tool.Errorf(tool.InvalidArgument, "a revision is empty").WithHint("name a commit, branch or tag")
	case strings.HasPrefix(rev, "-"):
		return tool.Errorf(tool.InvalidArgument, "the revision %q begins with \"-\"", display.Cut(rev, maxEcho)).WithHint("name a commit, branch or tag; options are not allowed")
	case len(rev) > maxRevision || strings.ContainsFunc(rev, unicode.IsControl):
		return tool.Errorf(tool.InvalidArgument, "the revision %q is too long or contains control characters", display.Cut(rev, maxEcho)).WithHint("name a commit, branch or tag")
	}
	return nil
}

// ambiguous matches git's warning about a name that several references have.
var ambiguous = regexp.MustCompile(`(?m)^warning: refname '(.*)' is ambiguous\.$`)

// maxEcho is how much of a wrong argument an error repeats, in bytes.
const maxEcho = 80

// commits returns the object ids of the commits that the revisions name. Git reads the
// revisions from its standard input, where it accepts no options.
func (r *repository) commits(ctx context.Context, revs ...string) ([]string, error) {
	var input strings.Builder
	for _, rev := range revs {
		if err := checkRevision(rev); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(rev, ":/") { // a text search, which finds only commits
			rev += "^{commit}"
		}
		input.WriteString(rev + "\n")
	}
	out, err := r.run(ctx, command{args: []string{"cat-file", "--batch-check=%(objectname) %(objecttype)"}, stdin: []byte(input.String())})
	if err != nil {
		return nil, err
	}
	for _, found := range ambiguous.FindAllStringSubmatch(out.stderr, -1) {
		if name := found[1]; name != "HEAD" && !strings.HasPrefix(name, "refs/") { // git prefers the full name
			return nil, tool.Errorf(tool.InvalidArgument, "%s is ambiguous: several references have this name", display.Name(display.Cut(name, maxEcho))).
				WithHint("use the full name, refs/heads/BRANCH or refs/tags/TAG, or the commit's id")
		}
	}
	lines := out.lines()
	if len(lines) != len(revs) {
		return nil, tool.Errorf(tool.Failed, "git did not resolve the revisions")
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

// commit is commits for one revision.
func (r *repository) commit(ctx context.Context, rev string) (string, error) {
	ids, err := r.commits(ctx, rev)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// exact is commit for the full name of a reference. If the reference does not exist, git
// alone would look for a branch or tag of this name, such as refs/heads/refs/stash.
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

// exists reports whether the reference with this full name exists.
func (r *repository) exists(ctx context.Context, ref string) (bool, error) {
	if err := checkRevision(ref); err != nil {
		return false, err
	}
	out, err := r.run(ctx, command{args: []string{"show-ref", "--verify", "--quiet", "--", ref}, exits: []int{1}})
	return err == nil && out.exit == 0, err
}

func noCommit(rev string, ambiguous bool) *tool.Error {
	if ambiguous {
		return tool.Errorf(tool.InvalidArgument, "Several commits begin with %s", display.Name(display.Cut(rev, maxEcho))).WithHint("use more characters of the commit's id")
	}
	return tool.Errorf(tool.NotFound, "There is no commit %s", display.Name(display.Cut(rev, maxEcho))).
		WithHint("find commits with git_log and git_branch; to name a file in a commit, pass the commit and the path separately")
}

// isMissing reports whether the error means that a commit does not exist.
func isMissing(err error) bool {
	known := tool.AsError(err)
	return known != nil && known.Code == tool.NotFound
}

// splitRange splits a range of revisions, "a..b" or "a...b". For a single revision, it
// returns only to.
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

// revisions resolves a revision or a range of revisions to object ids for git log.
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
